-- Everything about one key as of now: what `inspect` says of it, its window, what requests have set, and which waiters
-- it has on which replicas. Writes nothing. Waiters of dead replicas do not count, and are not named.
--
-- KEYS  1 state, 2 queue, 3 waiting, 4 replicas
-- ARGV  1 how many waiters to name at most
-- Reply a list: empty if there is no such key, else
--       1 window length in ms, 2 maximum, 3 maximum in the queue, 4 approved, 5 denied, 6 waiting,
--       7 hits of held approvals, 8 ms until its pause ends, or 0, 9 its further limits and 10 what is approved in them,
--       11 ms to the window's end, 12 whether a request has set the maximum, 13 that in the queue, 14 and the window's
--       length (1 or 0), 15 whether the key is in a recovery hold (1 or 0),
--       16 the head of the queue: for each waiter its replica, and how many ms it has waited,
--       17 for each replica with places: its id, its places, and how many ms its lease still runs
--@include lib/look
--@include lib/now

-- Withdrawn entries may stand before those of waiters, so more entries are read than are named.
local MOST_ENTRIES = 500

local function yes_or_no(value)
  return value and 1 or 0
end

local function head_of_queue(keys, state, queue, now_ms, most)
  local head, named = {}, 0
  if queue.places == 0 then
    return head
  end
  local length = redis.call('LLEN', keys.queue)
  local look_at_most = length == queue.living and most or MOST_ENTRIES
  local entries = redis.call('LRANGE', keys.queue, 0, look_at_most - 1)
  for _, entry in ipairs(read_entries(keys, entries, length ~= queue.places)) do
    if named == most then
      break
    end
    local counts = in_recovery_hold(state) or is_alive(replica_of(queue, entry.replica_id), now_ms)
    if entry.is_waiting and counts then
      named = named + 1
      head[#head + 1] = entry.replica_id
      head[#head + 1] = math.max(0, now_ms - math.floor(tonumber(entry.ticket) / 1000))
    end
  end
  return head
end

local function replicas_of(queue, now_ms)
  local replicas = {}
  for id, replica in pairs(queue.replicas) do
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
  local now_ms = math.floor(now_micros() / 1000)
  local state, queue, waiting = look_at(keys, now_ms)
  if not state then
    return {}
  end
  local limits_text, taken_text = further.look(state, now_ms)
  return {
    state.window,
    state.max,
    state.queue_max,
    state.approved,
    state.denied,
    waiting,
    state.held,
    pause_left(state, now_ms),
    limits_text,
    taken_text,
    micros_to_window_end(state.start, state.window, now_ms * 1000) / 1000,
    yes_or_no(state.max_is_set),
    yes_or_no(state.queue_max_is_set),
    yes_or_no(sets_window(state)),
    yes_or_no(in_recovery_hold(state)),
    head_of_queue(keys, state, queue, now_ms, tonumber(ARGV[1])),
    replicas_of(queue, now_ms),
  }
end
