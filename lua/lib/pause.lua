-- A pause of a key: until it ends nobody is approved, and waiters keep their places. `paused_until` is when it ends, in
-- ms since 1970; 0 means no pause. `set_at` is when a pause or a report was set, a hold was given or renewed, or the lease
-- of a replica with waiters was renewed by a check or a settle last. If that is in the future, Redis's clock has gone
-- back since, as in a failover to a host with another time.

local pause = {}

function pause.is_on(state)
  return state.paused_until > 0
end

-- What counts of a limit for checks: in a pause, at least all of its maximum. `state`: of a key, or a group (limits/group-limits).
function pause.used(state, limit)
  return pause.is_on(state) and math.max(limit.used, limit.max) or limit.used
end

-- Ends a pause whose time is over, so that waiters may be served.
function pause.end_past(state, now_ms)
  if pause.is_on(state) and now_ms >= state.paused_until then
    state.paused_until = 0
    state.made_room = true
  end
end

-- Pauses a key for this many ms from now on; 0 ends the pause. `can_shorten`: whether an earlier pause may end sooner by it.
function pause.set(state, call, millis, can_shorten)
  local paused_until = millis > 0 and call.now_ms + millis or 0
  if not can_shorten and paused_until <= state.paused_until then
    return
  end
  state.made_room = state.made_room or (paused_until == 0 and pause.is_on(state))
  state.paused_until = paused_until
  state.set_at = call.now_ms
end

return pause
