-- Everything about one key as of now: what `inspect` says of it, its window, what requests have set, and which waiters
-- it has on which replicas. Writes nothing. Waiters of dead replicas do not count, and are not named.
--
-- KEYS  1 state, 2 queue, 3 records, 4 replicas
-- ARGV  1 how many waiters to name at most, 2 how many lists
-- Reply a list: empty if there is no such key, else the names and values of inspect.lua, and after them:
--         window_is_set     1 if a request has set the length of the window, or of the next one, else 0
--         is_recovering     1 while the key recovers, else 0
--         queue             the head of the queue: for each waiter its replica, and how many ms it has waited
--         lists             of a queue with several lists (queue/lists), the longest ones: for each its id, how many wait in it,
--                           and for how many ms its head has waited
--         list_count        how many lists have waiters, in such a queue; else 0
--         replicas          for each replica with places: its id, its places, and for how many ms the last of them counts,
--                           unless its lease is renewed

local heads = require 'queue/heads'
local in_force = require 'lib/in-force'
local list_states = require 'queue/list-states'
local look = require 'lib/look'
local now = require 'lib/now'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'

-- Withdrawn entries may stand before those of waiters, so more entries are read than are named.
local MOST_ENTRIES = 500

local function yes_or_no(value)
  return value and 1 or 0
end

local function head_of_queue(keys, state, tally, now_ms, most)
  local head = {}
  for _, waiter in ipairs(heads.first_waiters(keys, state, tally, now_ms, most, MOST_ENTRIES)) do
    head[#head + 1] = waiter.replica_id
    head[#head + 1] = math.max(0, now_ms - waiter.arrival)
  end
  return head
end

-- The places of each replica, with those that it keeps.
local function places_by_replica(tally)
  local by_replica = {}
  for id, replica in pairs(tally.replicas) do
    local replica_id = replicas.split_id(id)
    local sum = by_replica[replica_id] or { places = 0, lease_ends = 0 }
    if replica.places > 0 then
      sum.places, sum.lease_ends = sum.places + replica.places, math.max(sum.lease_ends, replica.lease_ends)
      by_replica[replica_id] = sum
    end
  end
  return by_replica
end

local function replicas_of(tally, now_ms)
  local texts = {}
  for id, sum in pairs(places_by_replica(tally)) do
    texts[#texts + 1] = id
    texts[#texts + 1] = sum.places
    texts[#texts + 1] = sum.lease_ends - now_ms
  end
  return texts
end

local function run(KEYS, ARGV)
  local keys = { state = KEYS[1], queue = KEYS[2], records = KEYS[3], replicas = KEYS[4] }
  local now_us = now.micros()
  local now_ms = math.floor(now_us / 1000)
  local state, tally, waiting = look.at(keys, now_us)
  if not state then
    return {}
  end
  local reply = look.describe(state, waiting, now_ms)
  local function add(name, value)
    reply[#reply + 1], reply[#reply + 2] = name, value
  end
  add('window_is_set', yes_or_no(in_force.sets_window(state)))
  add('is_recovering', yes_or_no(recovery.is_on(state)))
  add('queue', head_of_queue(keys, state, tally, now_ms, tonumber(ARGV[1])))
  local longest, list_count = list_states.longest(keys, state, tally, now_ms, tonumber(ARGV[2]))
  for i = 3, #longest, 3 do
    longest[i] = math.max(0, now_ms - longest[i])
  end
  add('lists', longest)
  add('list_count', list_count)
  add('replicas', replicas_of(tally, now_ms))
  return reply
end
