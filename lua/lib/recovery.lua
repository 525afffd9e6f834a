-- Replicas do not all come back at once after Redis was down. While a key recovers, nobody is approved, so that
-- the queue is still served in order.
--
-- Three losses begin a recovery:
--   Redis lost the key with all its waiters. The first call creates the key again. A ticket from before shows the
--   loss, and begins a recovery that ends when the key has a certain age. If the caller has not put its waiters back, the
--   recovery lasts its usual time from now on, however old the key is.
--   Somebody removed one of the three keys of the queue alone.
--   Redis was down for so long that leases ran out. Without a recovery, living replicas would count as dead. Silent
--   replicas alone do not show this: the caller's history may show that Redis was up.
--
-- A recovery helps only while Redis is up. Redis may stall in it, or be down again, and its clock runs on. Only calls
-- of the key show that Redis is up, so replicas with waiters also call before a recovery ends. If nobody called for
-- LONGEST_SILENCE, the recovery begins again. But perhaps nobody calls because no replica with waiters is alive. So a
-- recovery begins again MOST_AGAIN times at most, and then ends with the first call after its time.
--
-- `born` is when Redis got the key. `recovery_until` is when the recovery ends; 0 means that there is none.
-- `recovery_seen` is when a call last came in it. These are in ms since 1970. `recovery_again` is how often it has
-- begun again.

local replicas = require 'queue/replicas'
local stored = require 'lib/stored'
local wake = require 'lib/wake'

local recovery = {}

-- What a caller knows of the time before its call, as the text `<loaded>:<since>:<until>` of times in ms by Redis's
-- clock, with 0 for a time that it does not know:
--   loaded        when the caller loaded the rules that its limits come from
--   since, until  from when to when Redis has answered the caller. Redis was not down for longer than CONTACT_GAP of a
--                 lease in between.
-- src/redis/caller-history.ts builds it. Scripts parse it only when it decides something, which is rare.

-- Less than the shortest silence of a replica that counts: a replica renews its lease when a third of it is over.
local CONTACT_GAP = 0.5

function recovery.read_history(call)
  local loaded, since, until_ms = string.match(call.history, '^(%d+):(%d+):(%d+)$')
  return tonumber(loaded), tonumber(since), tonumber(until_ms)
end

-- Whether Redis was up from `time` on, or for a whole lease, in which each living replica would have renewed its own
-- lease. Then a replica that has been silent since is dead or cut off.
function recovery.was_up_since(call, time)
  local _, since, until_ms = recovery.read_history(call)
  local is_up_to_date = until_ms > call.now_ms - call.lease * CONTACT_GAP and until_ms <= call.now_ms
  return is_up_to_date and (since <= time or since <= call.now_ms - call.lease)
end

-- A replica notices Redis's return in less time: src/redis/shared/losses.ts.
local RECOVERY_MILLIS = 500
-- A replica with waiters calls when a recovery begins, CALL_BEFORE_END ms before its end, and up to 100 ms after it. So
-- the longest silence is 300 ms. The rest is for late calls.
local LONGEST_SILENCE = 400
local CALL_BEFORE_END = 200
local MOST_AGAIN = 3
-- A call so soon after another shows no more than the other, so it is not noted, and no replica is asked for it.
local SOON = 50
-- A replica renews its lease when a third of it is over, so the freshest lease has two thirds left while Redis is up.
-- If Redis was down until a lease ran out, even the freshest has at most a third left. This is a little more.
local LEASE_PART_LEFT = 0.4

-- Whether a waiter with this ticket came before Redis got the key, which Redis has then lost in between.
function recovery.is_older_than_key(keys, state, ticket)
  return tonumber(ticket) < stored.born_at(keys, state) * 1000
end

-- Whether the key is old enough to have recovered from its loss.
function recovery.may_have_ended(keys, state, call)
  return call.now_ms >= stored.born_at(keys, state) + RECOVERY_MILLIS
end

function recovery.is_on(state)
  return state.recovery_until > 0
end

-- How many wait. In a recovery no replica counts as dead.
function recovery.count_waiting(state, tally)
  return recovery.is_on(state) and tally.places or tally.living
end

-- Begins a recovery that would end in the future, unless there is one. Returns whether it begins.
local function begin(state, now_ms, recovery_until)
  if recovery.is_on(state) or now_ms >= recovery_until then
    return false
  end
  state.recovery_until = recovery_until
  state.recovery_seen = now_ms
  return true
end

local function call_for_waiters(keys, call)
  wake.publish(keys.state, call, '{"memoryLost":true}')
end

-- Begins the recovery of a lost key. `is_missing`: whether the caller's waiters were in the queue of the lost key, and
-- are not in the queue of the new one. If the key was idle meanwhile, they left its queue without a loss.
function recovery.begin_after_loss(keys, state, call, is_missing)
  -- After the clock has gone back, the key may be from the future.
  local since = is_missing and call.now_ms or math.min(stored.born_at(keys, state), call.now_ms)
  if begin(state, call.now_ms, since + RECOVERY_MILLIS) then
    call_for_waiters(keys, call)
  end
end

-- Begins the recovery of a queue that was lost without its key. In a recovery it begins again: other replicas may have
-- put their waiters back before the loss.
function recovery.begin_after_loss_of_queue(keys, state, call)
  state.recovery_until = math.max(state.recovery_until, call.now_ms + RECOVERY_MILLIS)
  state.recovery_seen = call.now_ms
  call_for_waiters(keys, call)
end

-- Until when Redis has surely heard of a replica with this lease: later, the replica would have renewed it if Redis had
-- been up.
local function heard_until(lease_ends, call)
  return lease_ends - call.lease * LEASE_PART_LEFT
end

-- Whether Redis was up when the caller had to renew its lease, and its clock has not gone back since. Then the lease
-- may be renewed without a recovery before.
function recovery.has_current_lease(caller, call)
  local lease_ends = replicas.own_lease_ends(caller)
  return heard_until(lease_ends, call) >= call.now_ms and lease_ends <= call.now_ms + call.lease
end

-- When the last lease of any replica with waiters ends; nil if all are gone, and only the places that they kept still count:
-- these show nothing.
local function freshest_lease(tally, call)
  local freshest
  for _, replica in pairs(tally.replicas) do
    local lease_ends = replicas.own_lease_ends(replica)
    if lease_ends > call.now_ms or not replicas.is_alive(replica, call.now_ms) then
      freshest = math.max(freshest or 0, lease_ends)
    end
  end
  return freshest
end

-- Begins a recovery if somebody waits, all replicas with waiters have been silent, and the caller's history does not
-- show that Redis was up meanwhile. The caller's own lease must be renewed after this. Replicas that fell silent before
-- the last recovery began could come back in it. If they fell silent later, that recovery ended while Redis was down,
-- and another begins.
function recovery.begin_if_redis_was_down(state, tally, call)
  local freshest = tally.places > 0 and not recovery.is_on(state) and freshest_lease(tally, call)
  if not freshest then
    return
  end
  local silent_since = heard_until(freshest, call)
  local is_new_silence = silent_since < call.now_ms and silent_since >= (state.ended_recovery_began or -math.huge)
  if is_new_silence and not recovery.was_up_since(call, silent_since) then
    begin(state, call.now_ms, call.now_ms + RECOVERY_MILLIS)
  end
end

-- Takes note of a call in a recovery. After a long silence the recovery begins again, unless the caller knows that
-- Redis was up for a lease in it, in which each living replica would have called.
function recovery.note_call(state, call)
  if not recovery.is_on(state) then
    return
  end
  local silent = call.now_ms - state.recovery_seen
  local is_long = silent > LONGEST_SILENCE
    and not (silent >= call.lease and recovery.was_up_since(call, state.recovery_seen))
  if is_long and state.recovery_again < MOST_AGAIN then
    state.recovery_until = call.now_ms + RECOVERY_MILLIS
    state.recovery_again = state.recovery_again + 1
  end
  if silent >= SOON or silent < 0 then
    state.recovery_seen = call.now_ms
  end
end

-- Microseconds until a replica with waiters has to call again because of a recovery; 0 if it calls in time anyway.
-- `to_room`: when it calls anyway, from `room.micros_to`.
function recovery.micros_to_settle(state, call, to_room)
  if not recovery.is_on(state) then
    return 0
  end
  local to_end = state.recovery_until * 1000 - call.now_us
  local to_call = to_end - CALL_BEFORE_END * 1000
  if to_call >= SOON * 1000 then
    return to_call
  end
  return to_room > to_end and to_end or 0
end

-- Ends a recovery whose time is over, so that waiters may be served. A recovery that begins in the future is from
-- before the clock went back, and lasts its usual time from now on.
function recovery.end_past(state, now_ms)
  if recovery.is_on(state) and now_ms < state.recovery_until - RECOVERY_MILLIS then
    state.recovery_until = now_ms + RECOVERY_MILLIS
  elseif recovery.is_on(state) and now_ms >= state.recovery_until then
    state.ended_recovery_began = state.recovery_until - RECOVERY_MILLIS
    state.recovery_until, state.recovery_seen, state.recovery_again = 0, 0, 0
    state.made_room = true
  end
end

-- What a call does if Redis's clock has gone back, as in a failover to a host with another time.

-- After the clock has gone back, nothing lasts longer than it was set for: windows that begin in the future begin now,
-- with what was approved in them, and a pause or a report lasts as long as it still had to when `set_at` was. lib/holds and
-- queue/queue do the same for holds and leases. Returns whether the clock has gone back, as far as these show.
function recovery.begin_by_now(state, now_ms)
  local goes_back = state.set_at > now_ms
  if state.paused_until > state.set_at and state.set_at > now_ms then
    state.paused_until = state.paused_until - state.set_at + now_ms
  end
  for _, limit in ipairs(state.limits) do
    goes_back = limit:begin_by(now_ms, state.set_at) or goes_back
  end
  if goes_back then
    state.set_at, state.served = math.min(state.set_at, now_ms), math.min(state.served, now_ms)
    state.expires = math.min(state.expires, stored.idle_time(state))
    -- The call also looks at the leases.
    state.needs_expiry = true
  end
  return goes_back
end

return recovery
