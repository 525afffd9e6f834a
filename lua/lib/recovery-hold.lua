-- When replicas come back to Redis after it was away, they do not come all at once. So that the queue is
-- served in order all the same, a key can be held for a moment, in which nobody is approved.
--
-- Two losses begin a recovery hold. A key that Redis lost, with all who waited, is made anew by the first
-- call that comes; it is held until it has a certain age, once a ticket shows that it was lost. And where
-- Redis was away for so long that leases ran out, replicas that live would be taken for dead.
--
-- `state.born` is when the key was made, `state.hold_until` when the hold ends, or 0: ms since 1970.
--@include lib/queue
--@include lib/wake

-- A replica finds out within less that Redis is back: src/redis/backoff.ts.
local HOLD_MILLIS = 500
-- Every replica renews its lease when a third of it is over. Where no replica has done so for that and
-- the two thirds after which one may have run out, Redis was away.
local LEASE_PART_LEFT = 0.4

-- Whether one who waits with this ticket has done so since before the key was made.
local function is_older_than_key(state, ticket)
  return ticket < state.born * 1000
end

local function is_held(state)
  return state.hold_until > 0
end

-- How many wait. While a key is held nobody is taken for dead.
local function count_waiting(state, queue)
  return is_held(state) and queue.places or queue.living
end

-- Returns whether a hold begins: it would end in the future, and there is none already.
local function begin_hold(state, now_ms, hold_until)
  if is_held(state) or now_ms >= hold_until then
    return false
  end
  state.hold_until = hold_until
  state.changed = true
  return true
end

-- Holds a key that was lost, and calls for those who waited.
local function hold_lost(keys, state, call)
  if begin_hold(state, call.now_ms, state.born + HOLD_MILLIS) then
    publish(keys.state, call, '{"memoryLost":true}')
  end
end

-- Holds a key for which somebody waits, and whose replicas have all been silent, before any of them is taken
-- for dead. To be called before the caller's own lease is renewed. Where they were silent before the hold that ends now began,
-- they have had their time; a hold that began before they fell silent ended while Redis was away.
local function hold_if_redis_was_away(state, queue, call)
  if is_held(state) then
    return
  end
  local freshest = 0
  for _, replica in pairs(queue.replicas) do
    freshest = math.max(freshest, replica.lease_ends)
  end
  local silent_since = freshest - call.lease * LEASE_PART_LEFT
  if silent_since < call.now_ms and silent_since >= (state.ended_hold_began or -math.huge) then
    begin_hold(state, call.now_ms, call.now_ms + HOLD_MILLIS)
  end
end

-- Ends a hold whose time has come: from now on those who wait may be served.
local function end_hold(state, now_ms)
  if is_held(state) and now_ms >= state.hold_until then
    state.ended_hold_began = state.hold_until - HOLD_MILLIS
    state.hold_until = 0
    state.changed = true
    state.made_room = true
  end
end
