-- The entries of several lists (queue/lists) that do not count: of waiters of dead replicas, and of kept places that have outlived
-- their replica and their longest wait. They stay until their turn comes. A withdrawn waiter leaves such a list at once.

local entries = require 'queue/entries'
local heads = require 'queue/heads'
local lists = require 'queue/lists'

local dead_waiters = {}
dead_waiters.__index = dead_waiters

-- A call reads this many entries at most to find them. Those behind all count.
local MOST_READ = 1000

function dead_waiters.begin(keys, state, tally, now_ms)
  local may_read = state.lists and not heads.all_count(state, tally, now_ms) and MOST_READ or 0
  return setmetatable({ keys = keys, state = state, tally = tally, now_ms = now_ms, may_read = may_read, by_list = {} }, dead_waiters)
end

-- The indexes of such entries in a list, and the ticket of the first entry that counts; nil if none is read.
local function find(self, id)
  if self.by_list[id] or self.may_read == 0 then
    return self.by_list[id] or { indexes = {} }
  end
  local found = { indexes = {} }
  local read = entries.read(self.keys, lists.first_of(self.keys, id, self.may_read))
  for i, entry in ipairs(read) do
    if heads.counts(self.state, self.tally, entry, self.now_ms) then
      found.first = found.first or entry.ticket
    else
      table.insert(found.indexes, i)
    end
  end
  self.may_read, self.by_list[id] = self.may_read - #read, found
  return found
end

-- How many there are among the first entries of a list, and the ticket of the first entry that counts; nil if that is not read.
-- `most`: how many entries.
function dead_waiters:count(id, most)
  local found, count = find(self, id), 0
  for _, index in ipairs(found.indexes) do
    count = count + (index <= most and 1 or 0)
  end
  return count, found.first
end

-- How many stand before a check that joined now. `list`: its lane or group, or nil. `waiting`: how many wait in all. The dead
-- waiters are read once for all checks of a call: those that join come behind them.
function dead_waiters.count_before(keys, state, tally, now_ms, list, waiting)
  if not state.lists then
    return list and 0 or waiting
  end
  local id = list and list.id or lists.FIFO
  local count = lists.count(keys, id)
  state.dead_waiters = state.dead_waiters or dead_waiters.begin(keys, state, tally, now_ms)
  return math.min(waiting, count - state.dead_waiters:count(id, count))
end

return dead_waiters
