-- The states of keys as of now. Writes nothing. A window that has ended counts as empty, and a key that has
-- been idle for too long as removed. Waiters of dead replicas do not count.
--
-- KEYS  per key: 1 state, 2 waiting, 3 replicas
-- ARGV  none
-- Reply per key, in their order, a list: empty if there is no such key, else
--       1 window length in ms, 2 maximum, 3 maximum in the queue, 4 approved, 5 denied, 6 waiting, 7 hits of held approvals,
--       8 ms until its pause ends, or 0, 9 its further limits and 10 what is approved in them (`further.look`)
--       A key that fails, such as one of a wrong type, has its error in the list's place. The first key has a reply at
--       least. Keys after those that take long to read have none, and are left to the next call (lib/weight)
--@include lib/errors
--@include lib/look
--@include lib/now
--@include lib/weight

local NAMES_PER_KEY = 3

local function inspect(names, now_ms)
  local state, _, waiting = look_at(names, now_ms)
  if not state then
    return {}
  end
  return {
    state.window, state.max, state.queue_max, state.approved, state.denied, waiting, state.held,
    pause_left(state, now_ms), further.look(state, now_ms),
  }
end

local function run(KEYS, ARGV)
  local now_ms, replies = math.floor(now_micros() / 1000), {}
  weight.begin()
  for first = 1, #KEYS, NAMES_PER_KEY do
    if weight.is_spent() then
      break
    end
    local names = { state = KEYS[first], waiting = KEYS[first + 1], replicas = KEYS[first + 2] }
    replies[#replies + 1] = reply_of(inspect, names, now_ms)
  end
  return replies
end
