-- Fixed windows, back to back from the first check of a key. Pure arithmetic: no call to Redis.

local window = {}

-- A key is removed when this many windows have passed without a check, after the window of its last check.
local IDLE_WINDOWS = 3

-- Microseconds until the window that begins at `start` ends; at least 1 while it holds `now_us`.
function window.micros_to_end(start, length, now_us)
  return (start + length) * 1000 - now_us
end

-- When a key with this window is removed if nobody checks it again.
function window.idle_at(start, length)
  return start + length * (1 + IDLE_WINDOWS)
end

-- The same for a window that ends at this time.
function window.idle_after(ends, length)
  return ends + length * IDLE_WINDOWS
end

-- The start of the window that holds `now_ms`, for a key with an earlier window.
function window.start_of(earlier_start, length, now_ms)
  return now_ms - (now_ms - earlier_start) % length
end

-- How long ago a window of this length has begun if it ends in `millis_left`.
function window.begun_ago(length, millis_left)
  return length - math.min(math.floor(millis_left), length)
end

-- Whether the window that begins at `start` goes on. One that begins in the future is from before the clock went back:
-- `recovery.begin_by_now`.
function window.is_current(start, length, now_ms)
  local age = now_ms - start
  return age >= 0 and age < length
end

return window
