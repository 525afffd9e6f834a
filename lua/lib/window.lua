-- Fixed windows, back to back from the first check of a key. Pure arithmetic: no call to Redis.

-- A key is removed when this many windows have passed without a check.
local IDLE_WINDOWS = 3

-- Microseconds until the window of `state` ends; at least 1 while the window holds `now_us`.
local function micros_to_window_end(state, now_us)
  return (state.start + state.window) * 1000 - now_us
end

-- When the key is removed if nobody checks it again: IDLE_WINDOWS after the end of the current window.
local function idle_at(state)
  return state.start + state.window * (1 + IDLE_WINDOWS)
end

-- Moves `state` to the window that holds `now_ms`. Returns whether that is another window.
-- A changed window length counts from the first boundary after the change. A clock may go back by more
-- than a window, as in a failover to a host with another time. Then a new window starts, since the key
-- would stand still until the clock has caught up.
local function roll_window(state, now_ms, window_millis)
  local age = now_ms - state.start
  if age >= -state.window and age < state.window then
    return false
  end
  if age < 0 then
    state.start = now_ms
  else
    state.start = now_ms - age % state.window
  end
  if state.window ~= window_millis then
    state.window = window_millis
    state.start = now_ms - (now_ms - state.start) % window_millis
  end
  state.approved = 0
  state.denied = 0
  return true
end
