-- A pause of a key: until it ends nobody is approved, and waiters keep their places. `paused_until` is when it ends, in
-- ms since 1970; 0 means no pause. `set_at` is when a pause was set, a hold was given or renewed, or the lease of a
-- replica with waiters was renewed by a check or a settle last. If that is in the future, Redis's clock has gone back
-- since, as in a failover to a host with another time.
--@include lib/state

local function is_paused(state)
  return state.paused_until > 0
end

-- How much of a maximum is not left for checks: in a pause, all.
local function not_left(state, taken, max)
  return is_paused(state) and math.max(taken, max) or taken
end

-- After the clock has gone back, nothing lasts longer than it was set for: windows that begin in the future begin now, with
-- what was approved in them, and a pause lasts as long as it still had to when `set_at` was. lib/holds and lib/queue do the
-- same for holds and leases. Returns whether the clock has gone back, as far as these show.
local function begin_by_now(state, now_ms)
  local goes_back = state.set_at > now_ms or state.start > now_ms
  if state.paused_until > state.set_at and state.set_at > now_ms then
    set_more(state, 'paused_until', state.paused_until - state.set_at + now_ms)
  end
  state.start = math.min(state.start, now_ms)
  for _, limit in ipairs(state.further or {}) do
    goes_back = goes_back or limit.start > now_ms
    limit.start = math.min(limit.start, now_ms)
  end
  if goes_back then
    state.set_at, state.served = math.min(state.set_at, now_ms), math.min(state.served, now_ms)
    state.expires = math.min(state.expires, idle_time(state))
    state.changed = true
  end
  return goes_back
end

-- Ends a pause whose time is over, so that waiters may be served.
local function end_pause(state, now_ms)
  if is_paused(state) and now_ms >= state.paused_until then
    set_more(state, 'paused_until', 0)
    state.made_room = true
  end
end

-- Pauses a key from now on for so many ms; 0 ends the pause.
local function set_pause(state, call, millis)
  local paused_until = millis > 0 and call.now_ms + millis or 0
  state.made_room = state.made_room or (paused_until == 0 and is_paused(state))
  set_more(state, 'paused_until', paused_until)
  state.set_at = call.now_ms
end
