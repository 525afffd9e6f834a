-- Well below the number of values that Lua can unpack.

local chunks = {}
chunks.SIZE = 1000

-- Calls Redis with a name and a list of values, in one call for each chunk. Returns the sum of the replies.
function chunks.call(command, name, values)
  local sum = 0
  for first = 1, #values, chunks.SIZE do
    local last = math.min(first + chunks.SIZE - 1, #values)
    sum = sum + redis.call(command, name, unpack(values, first, last))
  end
  return sum
end

-- The same for a command that replies with a list: all of its elements, in order.
function chunks.list(command, name, values)
  local list = {}
  for first = 1, #values, chunks.SIZE do
    local last = math.min(first + chunks.SIZE - 1, #values)
    for _, element in ipairs(redis.call(command, name, unpack(values, first, last))) do
      list[#list + 1] = element
    end
  end
  return list
end

return chunks
