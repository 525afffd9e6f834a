-- What a call does if Redis's clock has gone back, as in a failover to a host with another time.

local stored = require 'lib/stored'

local clock_step = {}

-- After the clock has gone back, nothing lasts longer than it was set for: windows that begin in the future begin now,
-- with what was approved in them, and a pause or a report lasts as long as it still had to when `set_at` was. lib/holds and
-- queue/queue do the same for holds and leases. Returns whether the clock has gone back, as far as these show.
function clock_step.begin_by_now(state, now_ms)
  local goes_back = state.set_at > now_ms
  if state.paused_until > state.set_at and state.set_at > now_ms then
    state.paused_until = state.paused_until - state.set_at + now_ms
  end
  for _, limit in ipairs(state.limits) do
    goes_back = limit:begin_by(now_ms, state.set_at) or goes_back
  end
  if goes_back then
    state.set_at, state.served = math.min(state.set_at, now_ms), math.min(state.served, now_ms)
    state.expires = math.min(state.expires, stored.idle_time(state))
    -- The call also looks at the leases.
    state.needs_expiry = true
  end
  return goes_back
end

return clock_step
