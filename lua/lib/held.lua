-- When replicas come back to Redis after it was away, they do not come all at once. So that the queue is
-- served in order all the same, a key can be held for a moment, in which nobody is approved.
--
-- That is done in two cases. A key that Redis lost, with all who waited, is made anew by the first call
-- that comes; it is held until it has a certain age, once a ticket shows that it was lost. And where Redis was
-- away for so long that leases have run out, replicas that live would be taken for dead.
--
-- `state.born` is when the key was made, `state.held` until when it is held, or 0: ms since 1970.
--@include lib/queue
--@include lib/publish

-- Longer than a replica needs to find out that Redis is back: src/redis/backoff.ts.
local HOLD_MILLIS = 500
-- Every replica renews its lease when a third of it is over. Where no replica has done so for that and
-- the two thirds after which one may have run out, Redis was away.
local LEASE_PART_LEFT = 0.4

-- Whether one who waits with this ticket has done so since before the key was made.
local function is_older_than_key(state, ticket)
  return ticket < state.born * 1000
end

-- Returns whether a hold begins: it would end in the future, and there is none already.
local function begin_hold(state, now_ms, held_until)
  if state.held > 0 or now_ms >= held_until then
    return false
  end
  state.held = held_until
  state.changed = true
  return true
end

-- Holds a key that was lost, and calls for those who waited.
local function hold_lost(state_key, state, now_ms)
  if begin_hold(state, now_ms, state.born + HOLD_MILLIS) then
    publish(state_key, '{"memoryLost":true}')
  end
end

-- Holds a key whose replicas have all been silent, before any of them is taken for dead. To be called
-- before the caller's own lease is renewed. Where they were silent before the hold that ends now began,
-- they have had their time; a hold that began before they fell silent ended while Redis was away.
local function hold_if_redis_was_away(state, replicas_key, now_ms, lease_millis)
  if state.held > 0 then
    return
  end
  local freshest = 0
  local leases = redis.call('HVALS', replicas_key)
  for _, lease_ends in ipairs(leases) do
    freshest = math.max(freshest, tonumber(lease_ends))
  end
  local silent_since = freshest - lease_millis * LEASE_PART_LEFT
  if silent_since < now_ms and silent_since >= (state.ended_hold_began or -math.huge) then
    begin_hold(state, now_ms, now_ms + HOLD_MILLIS)
  end
end

local function is_held(state)
  return state.held > 0
end

-- Ends a hold whose time has come: from now on those who wait may be served.
local function end_hold(state, now_ms)
  if state.held > 0 and now_ms >= state.held then
    state.ended_hold_began = state.held - HOLD_MILLIS
    state.held = 0
    state.changed = true
    state.made_room = true
  end
end
