-- The turns of the sets that remember ids. lib/requests says what they are for.

local turns = {}

turns.COUNT = 3

-- Whether windows of this length, in ms, share the set of a turn: TURNS of them are shorter than a lease.
function turns.windows_share_set(call, length)
  return turns.COUNT * length < call.lease
end

function turns.after(turn)
  return turn % turns.COUNT + 1
end

-- The set of a window that has ended becomes the set of a turn. Somebody may have removed it.
function turns.keep(requests, past_requests)
  redis.call('UNLINK', past_requests)
  local failure = redis.pcall('RENAME', requests, past_requests).err
  if failure and not string.find(failure, 'no such key', 1, true) then
    redis.call('RENAME', requests, past_requests)
  end
end

return turns
