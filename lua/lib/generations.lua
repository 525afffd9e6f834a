-- The generations of remembered ids, each with a set: the state's field `gen` is the one that began last.
-- lib/past-requests says what they are for.

local generations = {}

generations.COUNT = 3
-- Of the state's field `goes_on`.
generations.GOES_ON, generations.HAS_GONE_ON = 1, 2

-- Whether windows of this length, in ms, share the set of a generation: COUNT of them are shorter than a lease.
function generations.windows_share_set(call, length)
  return generations.COUNT * length < call.lease
end

-- Whether a window that goes on shares it: its length says so, or the generation goes on (lib/past-requests).
function generations.current_shares_set(state, call)
  return state.goes_on == generations.GOES_ON or generations.windows_share_set(call, state.own.window)
end

function generations.after(generation)
  return generation % generations.COUNT + 1
end

-- The set of a window that has ended becomes the set of a generation. Somebody may have removed it.
function generations.keep(requests, past_requests)
  redis.call('UNLINK', past_requests)
  local failure = redis.pcall('RENAME', requests, past_requests).err
  if failure and not string.find(failure, 'no such key', 1, true) then
    redis.call('RENAME', requests, past_requests)
  end
end

return generations
