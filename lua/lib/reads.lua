-- How many elements a call has read of collections, whole or by range: holds, replicas and entries of queues. A call
-- for several keys that has read this many leaves the other keys to the next call, so that Redis answers other callers
-- in between.

local MOST_READ = 1000

-- Redis keeps it from one call of a function to the next.
local reads = { read = 0 }

function reads.begin()
  reads.read = 0
end

-- Returns the elements, which a command has just read. `of_each`: how many values an element has.
function reads.add(elements, of_each)
  reads.read = reads.read + #elements / of_each
  return elements
end

function reads.are_spent()
  return reads.read >= MOST_READ
end

return reads
