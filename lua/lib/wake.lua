-- Sends a message to the replicas that wait for a key.
-- `call.wake`: the command, PUBLISH or in a cluster SPUBLISH, and the suffix that turns the name of the state into the
-- name of the channel (src/redis/shared/key-names.ts).

local wake = {}
function wake.publish(state_key, call, message)
  local command, suffix = string.match(call.wake, '^(%u+) (.+)$')
  redis.call(command, state_key .. suffix, message)
end

return wake
