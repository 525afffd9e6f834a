-- The stored values. The second is false if there is no state.
local function read_values(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'turn', 'denied', 'more')
end
