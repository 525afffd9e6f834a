-- How many elements a call has read of collections, whole or by range: holds, replicas and entries of queues. A call
-- for several keys that has read this many leaves the other keys to the next call, so that Redis answers other callers
-- in between.

local MOST_READ = 1000

-- Redis keeps it from one call of a function to the next.
local weight = { read = 0 }

function weight.begin()
  weight.read = 0
end

-- Returns the elements, which a command has just read. `of_each`: how many values an element has.
function weight.add(elements, of_each)
  weight.read = weight.read + #elements / of_each
  return elements
end

function weight.is_spent()
  return weight.read >= MOST_READ
end

return weight
