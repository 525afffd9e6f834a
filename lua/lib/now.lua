-- The one clock of the limiter: Redis's own, in whole microseconds since 1970.
-- Tests replace this file, and nothing else, to control time.

local now = {}
function now.micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

return now
