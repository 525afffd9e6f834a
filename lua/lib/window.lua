-- Fixed windows, back to back from the first check of a key. Pure arithmetic: no call to Redis.

-- A key is removed when three windows have passed without a check: it is kept for that window, and for these.
local WINDOWS_KEPT = 4

-- Microseconds until the window of `state` ends; at least 1 while the window holds `now_us`.
local function micros_to_window_end(state, now_us)
  return (state.start + state.window) * 1000 - now_us
end

-- When the key is removed if nobody checks it again.
local function idle_at(state)
  return state.start + state.window * WINDOWS_KEPT
end

-- The start of the window that holds `now_ms`, of those of a key with a window that began earlier.
local function start_of_window(earlier_start, window, now_ms)
  return now_ms - (now_ms - earlier_start) % window
end

-- Whether the window of `state` goes on. A clock may go back by more than a window, as in a failover to a host with
-- another time. Then the window is over, since the key would stand still until the clock has caught up.
local function is_in_window(state, now_ms)
  local age = now_ms - state.start
  return age >= -state.window and age < state.window
end

-- Moves `state` to the window that holds `now_ms`, where that is another one. A changed window length counts from the
-- first boundary after the change.
local function roll_window(state, now_ms, window_millis)
  if now_ms < state.start then
    state.start = now_ms
  else
    state.start = start_of_window(state.start, state.window, now_ms)
  end
  if state.window ~= window_millis then
    state.window = window_millis
    state.start = start_of_window(state.start, window_millis, now_ms)
  end
  state.approved = 0
  state.denied = 0
  state.rolled = true
end
