-- The states of keys as of now. Reads only: a window that has ended counts as empty, a key that has
-- been idle for too long as gone, and waiters of dead replicas not at all.
--
-- KEYS  per key: 1 state, 2 queue, 3 replicas
-- ARGV  none
-- Reply per key, in their order, a list: empty where there is no such key, else
--       1 window length in ms, 2 maximum, 3 maximum in the queue, 4 approved, 5 denied, 6 waiting
--       A key that fails, such as one of a wrong type, has its error in the list's place.
--@include lib/now
--@include lib/errors
--@include lib/limiter

local NAMES_PER_KEY = 3

local now_ms = math.floor(now_micros() / 1000)

local function inspect(state_key, queue_key, replicas_key)
  local state = read_state(state_key)
  if not state then
    return {}
  end
  local waiting = count_living(queue_key, replicas_key, now_ms)
  if now_ms >= state.expires and waiting == 0 then
    return {}
  end
  roll_window(state, now_ms, state.window)
  return { state.window, state.max, state.queue_max, state.approved, state.denied, waiting }
end

local replies = {}
for first = 1, #KEYS, NAMES_PER_KEY do
  replies[#replies + 1] = reply_of(inspect, KEYS[first], KEYS[first + 1], KEYS[first + 2])
end
return replies
