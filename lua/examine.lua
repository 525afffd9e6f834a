-- Everything about one key as of now: what `inspect` says of it, its window, what requests have set, and which waiters
-- it has on which replicas. Writes nothing. Waiters of dead replicas do not count, and are not named.
--
-- KEYS  1 state, 2 queue, 3 records, 4 replicas
-- ARGV  1 how many waiters to name at most, 2 how many lists
-- Reply a JSON text, or '' if there is no such key: what inspect.lua replies of it, and
--         windowIsSet   whether a request has set the length of the window, or of the next one
--         isRecovering  whether the key recovers
--         queue         the head of the queue, if anybody waits: for each waiter its `replica`, and `waitedMillis`
--         lists         of a queue with several lists (queue/lists), the longest ones: for each its `id`, `waiting`, how many wait in
--                       it, and `oldestMillis`, for how many ms its head has waited
--         listCount     how many lists have waiters, in such a queue; else 0
--         replicas      if anybody waits, for each replica with places: `replica`, `places`, and `leaseMillis`, for how many ms the
--                       last of them counts, unless its lease is renewed

local heads = require 'queue/heads'
local in_force = require 'lib/in-force'
local list_states = require 'queue/list-states'
local look = require 'lib/look'
local now = require 'lib/now'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'

-- Withdrawn entries may stand before those of waiters, so more entries are read than are named.
local MOST_ENTRIES = 500

local function head_of_queue(keys, state, tally, now_ms, most)
  local head = {}
  for _, waiter in ipairs(heads.first_waiters(keys, state, tally, now_ms, most, MOST_ENTRIES)) do
    head[#head + 1] = { replica = waiter.replica_id, waitedMillis = math.max(0, now_ms - waiter.arrival) }
  end
  return head
end

-- Those of a replica and those that it keeps are together.
local function replicas_of(tally, now_ms)
  local described, by_id = {}, {}
  for id, replica in pairs(tally.replicas) do
    if replica.places > 0 then
      local replica_id = replicas.split_id(id)
      if not by_id[replica_id] then
        by_id[replica_id] = { replica = replica_id, places = 0, leaseMillis = -now_ms }
        described[#described + 1] = by_id[replica_id]
      end
      local sum = by_id[replica_id]
      sum.places, sum.leaseMillis = sum.places + replica.places, math.max(sum.leaseMillis, replica.lease_ends - now_ms)
    end
  end
  return described
end

local function run(KEYS, ARGV)
  local keys = { state = KEYS[1], queue = KEYS[2], records = KEYS[3], replicas = KEYS[4] }
  local now_us = now.micros()
  local now_ms = math.floor(now_us / 1000)
  local state, tally, waiting = look.at(keys, now_us)
  if not state then
    return ''
  end
  local reply = look.describe(state, waiting, now_ms)
  reply.windowIsSet, reply.isRecovering = in_force.sets_window(state), recovery.is_on(state)
  reply.queue = head_of_queue(keys, state, tally, now_ms, tonumber(ARGV[1]))
  reply.lists, reply.listCount = list_states.longest(keys, state, tally, now_ms, tonumber(ARGV[2]))
  reply.replicas = replicas_of(tally, now_ms)
  return cjson.encode(reply)
end
