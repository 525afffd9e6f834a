-- The life of one instance, that is of a limiter key, in a script: open it as of now, change `state`,
-- serve the waiters, close it.

local approvals = require 'lib/approvals'
local clock_step = require 'lib/clock-step'
local digits = require 'lib/digits'
local further = require 'lib/further'
local further_fields = require 'lib/further-fields'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local limits_text = require 'lib/limits-text'
local pause = require 'lib/pause'
local queue = require 'lib/queue'
local recovery = require 'lib/recovery'
local requests = require 'lib/requests'
local several_hits = require 'lib/several-hits'
local stored = require 'lib/stored'
local wake = require 'lib/wake'
local window = require 'lib/window'

local instance = {}

-- A call that serves or takes more entries than this would block other callers of Redis for too long.
local MOST_SERVED = 500
local MOST_TAKEN = 2000

-- While somebody waits, and after an approval from the queue, the keys outlive windows and leases. Redis's
-- clock runs on while Redis stalls or is unreachable, and the queue must still exist afterwards.
local LEASES_KEPT = 6
-- A replica with waiters settles again within this many leases (src/redis/waiting/waiting-room.ts). Its renewals
-- in between set no expiry.
local LEASES_UNSETTLED = 15

-- A window in which somebody waits counts as one with a check. Waiters of dead replicas do not count, except
-- in a recovery hold: their replicas may live.
local function keep_while_waited_for(keys, state, call)
  if state.has_more and recovery.count_waiting(state, queue.read(keys, state, call)) > 0 then
    state.expires = stored.idle_time(state)
  end
end

-- Whether the key has been idle for too long. Its own field decides that. Redis's expiry only frees memory.
local function is_idle(keys, state, call)
  if call.now_ms < state.expires or recovery.is_on(state) or stored.has_holds(state) or pause.is_on(state) then
    return false
  end
  local tally = queue.read(keys, state, call)
  if tally.places > 0 then
    recovery.begin_if_redis_was_down(state, tally, call)
  end
  return recovery.count_waiting(state, tally) == 0
end

-- If its memory is full, Redis refuses a script at its first write that takes memory. After a write that takes none,
-- all later writes pass. So existing keys are decided, and only new keys fail. A script has to decide new keys
-- first.
--
-- A call of checks does that only after Redis has refused one (`may_be_full`), and knows then whether approvals may still
-- take memory (`is_over_full`). Before that, its first write has to take memory, so that Redis refuses it. What has ended
-- would be removed first. So something is written as it is before. `state`: absent if nothing is removed first.
function instance.decide_in_full_memory(state_key, call, state)
  if call.may_be_full then
    redis.call('HDEL', state_key, '')
    call.may_be_full = false
    return
  end
  local now_ms = call.now_ms
  local ends = state and (
    not window.is_current(state.start, state.window, now_ms) or (stored.has_holds(state) and now_ms >= state.lapses)
  )
  for _, limit in ipairs(state and state.further or {}) do
    ends = ends or not window.is_current(limit.start, limit.window, now_ms)
  end
  if ends then
    redis.call('HSET', state_key, 'turn', digits(state.turn))
  end
end

-- Until when a replica may come back that was cut off, and does not know that its waiter was served.
local function outage_ends(state, call)
  return state.served > 0 and state.served + LEASES_KEPT * call.lease or 0
end

local function keep_until(state, call)
  return math.max(
    state.expires, requests.remembered_until(state, call), outage_ends(state, call),
    state.hold_until, state.held_until, state.paused_until
  )
end

-- How many hits a window may have: its maximum, but no more ids than a set may hold. Where approvals have several hits,
-- the ids are counted apart (`instance.free_ids`).
function instance.capacity(state, call)
  return requests.counts_ids_apart(state) and state.max or math.min(state.max, call.max_ids)
end

-- Whether the maximum has room for one hit.
local function has_own_room(state, call)
  return state.approved < instance.capacity(state, call)
end

-- Whether all limits have room for one hit.
function instance.has_room(state, call)
  return has_own_room(state, call) and further.has_room(state)
end

-- A time at which there is room, but not before the end of a pause or a recovery hold. If there is room already, that
-- end alone counts.
local function unless_closed(state, time, has_room_now)
  local closed = math.max(state.hold_until, state.paused_until)
  return closed > 0 and has_room_now and closed or math.max(time, closed)
end

-- When the maximum has more room.
local function own_room_at(state)
  return stored.more_room_at(state, state.start + state.window, state.held, state.max)
end

-- When there may be room for waiters: when all limits that are full have room, or, if none is full, when any limit has
-- more.
local function room_at(state, call)
  local time = own_room_at(state)
  if not state.further then
    return unless_closed(state, time, has_own_room(state, call))
  end
  local is_full = not instance.has_room(state, call)
  local choose = is_full and math.max or math.min
  if is_full and has_own_room(state, call) then
    time = 0
  end
  for _, limit in ipairs(state.further) do
    if not is_full or limit.taken >= limit.max then
      time = choose(time, further.room_at(state, limit))
    end
  end
  return unless_closed(state, time, not is_full)
end

-- The instance as of now, or nil if there is none. `state`: from `stored.read`. The second value is the last state of an
-- instance that has been idle for too long. Redis keeps it while it is needed. It shows a replica that has not heard of
-- its waiter's approval yet that Redis has not lost the key.
function instance.open(keys, call, state)
  if not state then
    return nil
  end
  instance.decide_in_full_memory(keys.state, call, state)
  -- Replicas with waiters know this time, or an earlier one.
  state.known_room_at = state.has_more and room_at(state, call)
  if clock_step.begin_by_now(state, call.now_ms) then
    state.clock_went_back = true
    holds.shorten(keys, state, call)
    -- Rules stay from now on at most.
    in_force.may_change(keys, state, call)
  end
  recovery.note_call(state, call)
  recovery.end_past(state, call.now_ms)
  pause.end_past(state, call.now_ms)
  holds.end_lapsed(keys, state, call)
  if is_idle(keys, state, call) then
    stored.born_at(keys, state)
    several_hits.forget_all(keys, state)
    further.forget(keys, state)
    redis.call('UNLINK', keys.requests, keys.queue, keys.waiting, keys.replicas)
    if keep_until(state, call) <= call.now_ms then
      redis.call('UNLINK', keys.state)
    else
      -- After the clock has gone back, there must be no approvals without ids or holds, and no pause that is over. And a
      -- caller that knows less of Redis would begin the recovery hold again, in a key that is removed.
      if state.stored_approved > 0 then
        redis.call('HSET', keys.state, 'approved', 0)
      end
      if state.has_more then
        local unused = state.further and further_fields.format_unused(state) or 0
        redis.call('HSET', keys.state, 'holds', 0, 'further', unused, 'hold_until', 0, 'paused_until', 0)
      end
    end
    return nil, state
  end
  further.end_windows(keys, state, call.now_ms)
  if not window.is_current(state.start, state.window, call.now_ms) then
    local ended = { start = state.start, window = state.window }
    -- An approval may have been corrected to no hits.
    local has_requests = state.stored_approved > 0 or state.hits == 1
    local rules = in_force.limits_of_next_window(keys, state, call)
    window.roll(state, call.now_ms, in_force.length_of_next_window(state, rules))
    in_force.take_next_window(state)
    if rules then
      in_force.take_maxima(keys, state, call)
    end
    requests.end_window(keys, state, call, ended, has_requests)
    keep_while_waited_for(keys, state, call)
  end
  return state
end

-- A new instance, whose window begins now or began at `start`. Approvals of an evicted or deleted state do not count.
-- `idle`: the last state of the instance before, if it is known. The approvals that it remembers stay known, and the
-- tickets that it gave show no loss. `limits`: by default those of the caller.
function instance.new(keys, call, idle, start, limits)
  limits = limits or call.limits
  local state = stored.new(call, start or call.now_ms, idle, limits)
  if idle then
    redis.call('UNLINK', keys.state)
    state.limits_changed_at = call.now_ms
    if call.now_ms < outage_ends(idle, call) then
      stored.set_more(state, 'served', idle.served)
    end
    if call.now_us <= idle.ticket then
      -- The clock has gone back. A waiter may still be put back with such a ticket.
      stored.set_more(state, 'ticket', idle.ticket)
    end
  end
  further.begin(keys, state, limits, call.now_ms)
  state.expires = stored.idle_time(state)
  local has_requests = redis.call('EXISTS', keys.requests) == 1
  requests.end_window(keys, state, call, idle or state, has_requests)
  if queue.read(keys, state, call).places > 0 then
    -- Only the lost state knew whether its queue is in order, and that somebody has waited.
    stored.set_more(state, 'unsorted', 1)
    stored.set_more(state, 'ticket', queue.last_ticket(keys, state))
  end
  return state
end

-- How long ago a window of this length has begun if it ends in `millis_left`.
local function begun_ago(length, millis_left)
  return length - math.min(math.floor(millis_left), length)
end

-- The start of the same window, of which at least a millisecond is left.
local function lost_start(call, length, millis_left)
  return call.now_ms - math.min(begun_ago(length, millis_left), length - 1)
end

-- An instance that Redis lost while somebody waited. The lost window was full, and stays full until it ends. As far as
-- the caller knows: `limits`, a text, are the limits that were in force, or ''; `millis_left` are the ms until there was
-- room, below 0 if that time is over. Which of several limits was full is unknown. So all of them are full until then.
function instance.restore(keys, call, limits, millis_left)
  limits = limits == '' and call.limits or limits_text.parse(limits)
  local state = instance.new(keys, call, nil, lost_start(call, limits.window, millis_left), limits)
  state.approved = state.max
  for _, limit in ipairs(state.further or {}) do
    limit.start, limit.taken = lost_start(call, limit.window, millis_left), limit.max
  end
  -- The limits were in force in the lost window. Rules that were loaded since, as in an outage, are newer.
  state.limits_changed_at = call.now_ms - begun_ago(limits.window, millis_left)
  return state
end

-- Restores the limits that requests had set in an instance that was created again after a loss, unless requests have
-- set others since. `limits`: as for `instance.restore`.
function instance.restore_overrides(state, limits)
  if limits == '' then
    return
  end
  limits = limits_text.parse(limits)
  if limits.window_is_set and not state.window_is_set and state.next_window == 0 then
    stored.set_more(state, 'next_window', limits.window)
  end
  if limits.max_is_set and not state.max_is_set then
    state.made_room = state.made_room or limits.max > state.max
    state.max, state.max_is_set = limits.max, true
    state.limits_changed = true
  end
  if limits.queue_max_is_set and not state.queue_max_is_set then
    state.queue_max, state.queue_max_is_set = limits.queue_max, true
    state.limits_changed = true
  end
end

-- How many more ids the set may hold.
function instance.free_ids(keys, state, call)
  return call.max_ids - requests.count_ids(keys, state)
end

-- Microseconds until waiters may be served. 0: another call can serve some at once.
function instance.micros_to_room(keys, state, call)
  if state.serving == 1 and not recovery.is_on(state) and not pause.is_on(state) then
    return 0
  end
  local time = room_at(state, call)
  if state.further and in_force.awaits_boundary(keys, state, call) then
    time = math.min(time, state.start + state.window)
  end
  return time * 1000 - call.now_us
end

-- The fewest microseconds until a check that joined the queue now would have its turn, if nobody left the queue and
-- nothing was released before. `places`: how many wait, of which each needs one hit at least. `hits`: those of the check.
function instance.micros_to_turn(keys, state, call, places, hits)
  local most = hits == 1 and instance.capacity(state, call) or state.max
  local room, to_room = math.max(0, most - state.approved), instance.micros_to_room(keys, state, call)
  local missing = places + math.min(hits, most) - room
  if state.further then
    to_room = math.max(to_room, further.micros_to_turn(state, call, places, hits))
  end
  if missing <= 0 then
    return to_room
  end
  local next_window = in_force.length_of_next_window(state, in_force.limits_of_next_window(keys, state, call))
  return math.max(to_room, window.micros_to_missing(state.start, state.window, call.now_us, missing, most, next_window))
end

-- Whether a newcomer may be approved. Waiters come first.
function instance.admits_newcomers(state, call)
  return instance.has_room(state, call) and state.serving == 0 and state.blocked == 0 and not recovery.is_on(state)
    and not pause.is_on(state)
end

-- Approves waiters from the head of the queue while the window has room. One call serves a limited number, so
-- that Redis answers others in between. `state.serving` notes that the next call can approve more, `state.blocked` that
-- the head can not have its terms now.
local function serve_queue(keys, state, call)
  local tally = queue.read(keys, state, call)
  local granted, taken, is_blocked = {}, 0, false
  local function approve(ids, terms)
    approvals.add(keys, state, call, ids, terms)
    for _, id in ipairs(ids) do
      granted[#granted + 1] = id
    end
  end
  local free, ids_left = state.max - state.approved, instance.free_ids(keys, state, call)
  -- An approval that is held needs no place in the set of ids.
  local may_hold = state.max_holds > 0
  while free > 0 and further.has_room(state) and (ids_left > 0 or may_hold) and not is_blocked
    and tally.living > 0 and #granted < MOST_SERVED and taken < MOST_TAKEN
  do
    local most, took = math.min(free, math.max(ids_left, 1), MOST_SERVED - #granted), 0
    local left = {
      hits = free,
      ids = ids_left,
      holds = holds.free(keys, state),
      further = state.further and further.room(keys, state, call),
    }
    took, is_blocked = queue.take_heads(keys, state, call.now_ms, left, most, approve)
    taken = taken + took
    free, ids_left = state.max - state.approved, instance.free_ids(keys, state, call)
  end
  if tally.living == 0 and tally.places > 0 then
    queue.drop(keys, tally)
  end
  -- Without a place among the ids the head waits for one, also if a newcomer whose approval is held would need none.
  is_blocked = is_blocked or (ids_left <= 0 and not may_hold)
  local goes_on = free > 0 and further.has_room(state) and tally.living > 0
  stored.set_more(state, 'serving', (goes_on and not is_blocked) and 1 or 0)
  stored.set_more(state, 'blocked', (goes_on and is_blocked) and 1 or 0)
  state.granted = granted
  if #granted > 0 then
    state.served = call.now_ms
    -- The leases of the waiters may have run out before this window began, which left `expires` as it was.
    state.expires = math.max(state.expires, stored.idle_time(state))
  end
end

-- Approves waiters if there is room again. Every script calls it before it approves any other check. So while somebody
-- waits, the window is full, the head can not have its terms now, the queue is being served, or the key is paused or in
-- its recovery hold.
-- `state.made_room`: an approval was released, the maximum raised, a hold or a pause ended, or a place put back.
function instance.serve(keys, state, call)
  if not state.has_more then
    return
  end
  if state.unsorted == 1 and not recovery.is_on(state) then
    -- This call may put back only some of the waiters that were lost, and calls for the others follow. Without room
    -- the sort can wait for these calls.
    if instance.has_room(state, call) or not state.has_rejoined then
      queue.sort(keys, state, call)
    end
  end
  if not (state.rolled or state.made_room or state.serving == 1 or state.blocked == 1) then
    return
  end
  local tally = queue.read(keys, state, call)
  if tally.places == 0 then
    state.serving = 0
    if state.blocked == 1 then
      stored.set_more(state, 'blocked', 0)
    end
    return
  end
  recovery.begin_if_redis_was_down(state, tally, call)
  if not recovery.is_on(state) then
    if not pause.is_on(state) then
      serve_queue(keys, state, call)
    end
  elseif state.made_room and not state.has_rejoined then
    -- Without a wake, replicas that asked in this hold when the window was full would settle at the window's end.
    state.has_news = true
  end
end

-- What is not left of the limits: a number, or, in a key with further limits, a text `<not left>:<microseconds until
-- there is room>`, with `,<name>=` and the same after it for each further limit.
function instance.used(state, call)
  local own = pause.not_left(state, state.approved, state.max)
  if not state.further then
    return own
  end
  local function text_of(of_limit, time, has_room_now)
    local micros = unless_closed(state, time, has_room_now) * 1000 - call.now_us
    return string.format('%.0f:%.0f', of_limit, micros)
  end
  local texts = { text_of(own, own_room_at(state), has_own_room(state, call)) }
  for i, limit in ipairs(state.further) do
    local of_limit = pause.not_left(state, limit.taken, limit.max)
    texts[i + 1] = limit.name .. '='
      .. text_of(of_limit, further.room_at(state, limit), limit.taken < limit.max)
  end
  return table.concat(texts, ',')
end

-- Tells every replica that listens which waiters were approved and when, and when there may be room again. By the number
-- a replica notices that it has missed a wake. `waitingFrom`, below which no ticket waits, is for replicas of the version
-- before, which do not know the number. Request ids are UUIDs, so they need no escaping.
local function publish_wake(keys, state, call)
  local granted = state.granted
  wake.publish(keys.state, call, string.format(
    '{"at":%.0f,"number":%.0f,"millisToRoom":%.14g,"waiting":%.0f,"waitingFrom":%.0f,"limits":"%s","max":%.0f,"approved":%s,"granted":[%s]}',
    call.now_ms,
    state.wake,
    instance.micros_to_room(keys, state, call) / 1000,
    recovery.count_waiting(state, queue.read(keys, state, call)),
    queue.lowest_waiting_ticket(keys, state, call),
    limits_text.format(state),
    state.max,
    state.further and '"' .. instance.used(state, call) .. '"' or digits(instance.used(state, call)),
    granted and #granted > 0 and '"' .. table.concat(granted, '","') .. '"' or ''
  ))
end

-- Whether replicas have to learn of this call: waiters were approved, or there may be room sooner than they know.
local function has_news(keys, state, call)
  if state.has_news or (state.granted and (#state.granted > 0 or state.serving == 1)) then
    return true
  end
  return state.known_room_at and room_at(state, call) < state.known_room_at
    and recovery.count_waiting(state, queue.read(keys, state, call)) > 0
end

local function write_expiry(keys, state, call)
  local until_ms = keep_until(state, call)
  if state.has_more and queue.read(keys, state, call).places > 0 then
    until_ms = math.max(until_ms, call.now_ms + (LEASES_UNSETTLED + LEASES_KEPT) * call.lease)
    for _, name in ipairs({ keys.queue, keys.waiting, keys.replicas }) do
      redis.call('PEXPIREAT', name, until_ms)
    end
  end
  local expire_at = digits(until_ms)
  redis.call('PEXPIREAT', keys.state, expire_at)
  requests.expire(keys, state, call, expire_at)
  if stored.has_holds(state) then
    redis.call('PEXPIREAT', holds.name(keys), expire_at)
    if state.orders_holds then
      holds.call_order(keys, state, 'PEXPIREAT', expire_at)
    end
  end
end

local function ends_later(state)
  return state.rolled or state.changed
    or (requests.counts_ids_apart(state) and state.approved ~= state.stored_approved)
end

-- Writes the changes, sets the expiry of every key, and wakes the replicas that have to learn of them.
function instance.close(keys, state, call)
  if state.stored_expires ~= stored.expires_to_store(state) then
    stored.more_changed(state)
  end
  -- Before the state is written: a queue that is repaired begins a recovery, which may change whether there is news, and
  -- the state has the number of the last wake.
  if ends_later(state) and state.has_more then
    queue.read(keys, state, call)
  end
  local is_news = has_news(keys, state, call)
  if is_news then
    stored.set_more(state, 'wake', state.wake + 1)
  end
  if state.tally and state.tally.places > 0 then
    queue.write_replicas(keys, state.tally)
  end
  stored.write(keys, state)
  if ends_later(state) then
    write_expiry(keys, state, call)
  elseif state.approved > state.stored_approved then
    requests.expire_new(keys, state, call, digits(keep_until(state, call)))
  end
  if is_news then
    publish_wake(keys, state, call)
  end
end

return instance
