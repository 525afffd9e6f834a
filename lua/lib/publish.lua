-- Sends a message to the replicas that wait for a key. In a cluster, and in another database than 0,
-- the program puts another fragment in the place of this one: see src/redis/publish-fragment.ts.
local function publish(state_key, message)
  redis.call('PUBLISH', state_key .. ':wake', message)
end
