-- Everything about one key as of now: what `inspect` says of it, its window, what requests have set, and which waiters
-- it has on which replicas. Writes nothing. Waiters of dead replicas do not count, and are not named.
--
-- KEYS  1 state, 2 queue, 3 waiting, 4 replicas
-- ARGV  1 how many waiters to name at most
-- Reply a list: empty if there is no such key, else the names and values of inspect.lua, and after them:
--         window_left       ms until the window ends
--         max_is_set        whether a request has set the maximum (1 or 0)
--         queue_max_is_set  that in the queue
--         window_is_set     the window's length, or that of the next one
--         is_recovering     whether the key is in a recovery hold
--         queue             the head of the queue: for each waiter its replica, and how many ms it has waited
--         replicas          for each replica with places: its id, its places, and how many ms its lease still runs

local in_force = require 'lib/in-force'
local look = require 'lib/look'
local now = require 'lib/now'
local queue = require 'lib/queue'
local recovery = require 'lib/recovery'
local window = require 'lib/window'

-- Withdrawn entries may stand before those of waiters, so more entries are read than are named.
local MOST_ENTRIES = 500

local function yes_or_no(value)
  return value and 1 or 0
end

local function head_of_queue(keys, state, tally, now_ms, most)
  local head, named = {}, 0
  if tally.places == 0 then
    return head
  end
  local length = redis.call('LLEN', keys.queue)
  local look_at_most = length == tally.living and most or MOST_ENTRIES
  local entries = redis.call('LRANGE', keys.queue, 0, look_at_most - 1)
  for _, entry in ipairs(queue.read_entries(keys, entries, length ~= tally.places)) do
    if named == most then
      break
    end
    local counts = recovery.is_on(state) or queue.is_alive(queue.replica_of(tally, entry.replica_id), now_ms)
    if entry.is_waiting and counts then
      named = named + 1
      head[#head + 1] = entry.replica_id
      head[#head + 1] = math.max(0, now_ms - math.floor(tonumber(entry.ticket) / 1000))
    end
  end
  return head
end

local function replicas_of(tally, now_ms)
  local replicas = {}
  for id, replica in pairs(tally.replicas) do
    if replica.places > 0 then
      replicas[#replicas + 1] = id
      replicas[#replicas + 1] = replica.places
      replicas[#replicas + 1] = replica.lease_ends - now_ms
    end
  end
  return replicas
end

local function run(KEYS, ARGV)
  local keys = { state = KEYS[1], queue = KEYS[2], waiting = KEYS[3], replicas = KEYS[4] }
  local now_ms = math.floor(now.micros() / 1000)
  local state, tally, waiting = look.at(keys, now_ms)
  if not state then
    return {}
  end
  local reply = look.describe(state, waiting, now_ms)
  local function add(name, value)
    reply[#reply + 1], reply[#reply + 2] = name, value
  end
  add('window_left', window.micros_to_end(state.start, state.window, now_ms * 1000) / 1000)
  add('max_is_set', yes_or_no(state.max_is_set))
  add('queue_max_is_set', yes_or_no(state.queue_max_is_set))
  add('window_is_set', yes_or_no(in_force.sets_window(state)))
  add('is_recovering', yes_or_no(recovery.is_on(state)))
  add('queue', head_of_queue(keys, state, tally, now_ms, tonumber(ARGV[1])))
  add('replicas', replicas_of(tally, now_ms))
  return reply
end
