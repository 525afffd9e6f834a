-- The state of a key as of now. Reads only: a window that has ended counts as empty, a key that has
-- been idle for too long as gone, and waiters of dead replicas not at all.
--
-- KEYS  1 state, 2 queue, 3 replicas
-- ARGV  none
-- Reply empty where there is no such key, else
--       1 window length in ms, 2 maximum, 3 maximum in the queue, 4 approved, 5 denied, 6 waiting
--@include lib/now
--@include lib/limiter

local state = read_state(KEYS[1])
if not state then
  return {}
end
local now_ms = math.floor(now_micros() / 1000)
local waiting = count_living(KEYS[2], KEYS[3], now_ms)
if now_ms >= state.expires and waiting == 0 then
  return {}
end
roll_window(state, now_ms, state.window)
return { state.window, state.max, state.queue_max, state.approved, state.denied, waiting }
