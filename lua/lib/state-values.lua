-- The stored values. The second is false if there is no state.

local state_values = {}

-- Without what the limits of some kinds store, which is the seventh value: each value costs nearly all checks.
function state_values.read(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'turn', 'denied', 'more')
end

-- Returns all values: the same, and the field `own`.
function state_values.read_all(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'turn', 'denied', 'more', 'own')
end

return state_values
