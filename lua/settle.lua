-- Ends windows, serves the queue, and tells a replica the state of the waiters it asks about. A waiter may be
-- missing from the queue without an approval in this window or an earlier one: Redis lost its memory, or assumed
-- that the replica was dead. Such a waiter is put back in its old place.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, whose lease is renewed, 2 lease of a waiting replica in
--       ms, 3 limits, 4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 ms until the window ends, below 0 if it has ended, 8 the limits in force or '', as far as the caller knows,
--       for a key that Redis has lost
--       then per waiter it asks about: request id, ticket, with `*<hits>` after it if it needs more than one hit, and
--       `~<ms>` if its approval will be held
-- Reply 1 microseconds until there may be room again: until the window ends, or sooner. 0: there is room
--       now, and another call can serve more. -1: there is no such key
--       2 the lowest ticket that may still be waiting, 3 how many wait, 4 the limits in force, 5 what is not left of
--       them: see `taken` in lib/instance, 6 microseconds until the caller has to settle again, sooner than there may be
--       room, because of a recovery hold; 0 if it has not, 7 the time of this call in ms since 1970, 8 how many waiters
--       were put back, then their ids
--       then the ids approved by this call, and the ids asked about that were approved before, with `~<ms>` after each
--       of the latter that is held: until its hold lapses
--@include lib/instance

local FIRST_WAITER = FIRST_OWN + 2
local NO_SUCH_KEY = -1

local function append(list, more)
  for _, value in ipairs(more) do
    list[#list + 1] = value
  end
  return list
end

local function run(KEYS, ARGV)
  local call = read_call(ARGV)
  local keys = read_keys(KEYS, 1)
  local millis_left, known_limits = tonumber(ARGV[FIRST_OWN]), ARGV[FIRST_OWN + 1]
  local reply = { NO_SUCH_KEY, 0, 0, '', 0, 0, call.now_ms, 0 }

  local ids, waiters = {}, {}
  for i = FIRST_WAITER, #ARGV, 2 do
    local ticket, hits, hold = string.match(ARGV[i + 1], '^(%d+)%*?(%d*)~?(%d*)$')
    ids[#ids + 1] = ARGV[i]
    waiters[#waiters + 1] = {
      request_id = ARGV[i], ticket = tonumber(ticket), hits = tonumber(hits) or ONE_HIT, hold = tonumber(hold),
    }
  end

  -- This comes before anything else, since remembered approvals outlive the key.
  local approved = find_approved(keys, ids, call.now_ms)
  local heard, unheard = {}, {}
  for _, waiter in ipairs(waiters) do
    local id = waiter.request_id
    if approved[id] then
      heard[#heard + 1] = approved[id] == math.huge and id or id .. '~' .. digits(approved[id] - call.now_ms)
    else
      unheard[#unheard + 1] = waiter
    end
  end

  local state, idle = open_instance(keys, call, read_state(keys.state))
  local was_lost = not state and not idle
  if not state then
    if #unheard == 0 then
      return append(reply, heard)
    end
    state = was_lost and restore_instance(keys, call, known_limits, millis_left) or new_instance(keys, call, idle)
  end

  local queue = read_queue(keys, state, call)
  local missing = without_place(keys, state, unheard)
  if was_lost or (#missing > 0 and is_older_than_key(keys, state, missing[1].ticket)) then
    hold_after_loss(keys, state, call, not idle)
    restore_overrides(state, known_limits)
  end
  if queue.places > 0 then
    -- Only leases can show that Redis was down. A call that removes the places of dead replicas has looked at them before.
    hold_if_redis_was_down(state, queue, call)
  end
  take_rules_for_waiters(keys, state, call)
  if #missing > 0 then
    rejoin_queue(keys, state, call, missing)
    state.made_room = true
    state.expires = idle_time(state)
  elseif queue.replicas[call.replica] then
    renew_lease(state, queue, call)
    compact_queue(keys, state, call.now_ms)
    state.changed = true
  end
  serve_waiting(keys, state, call)
  close_instance(keys, state, call)

  reply[1] = micros_to_room(keys, state, call)
  reply[2] = lowest_waiting_ticket(keys, state, call)
  reply[3] = count_waiting(state, read_queue(keys, state, call))
  reply[4] = format_limits(state)
  reply[5] = taken(state, call)
  reply[6] = micros_to_look(state, call, reply[1])
  reply[8] = #missing
  for _, waiter in ipairs(missing) do
    reply[#reply + 1] = waiter.request_id
  end
  return append(append(reply, heard), state.granted or {})
end
