-- A pause of a key: until it ends nobody is approved, and waiters keep their places. `paused_until` is when it ends, in
-- ms since 1970; 0 means no pause.
--@include lib/state

local function is_paused(state)
  return state.paused_until > 0
end

-- How much of a maximum is not left for checks: in a pause, all.
local function not_left(state, taken, max)
  return is_paused(state) and math.max(taken, max) or taken
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
end
