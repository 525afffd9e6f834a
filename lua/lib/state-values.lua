-- The stored values. The second is false if there is no state.

local state_values = {}
function state_values.read(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'turn', 'denied', 'more')
end

return state_values
