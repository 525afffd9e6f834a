-- A walk over the waiters of several lists (queue/lists) in the order of their turns, which changes nothing until it is
-- written. queue/fifo-walk is the same for one list.

local chunks = require 'lib/chunks'
local lists = require 'queue/lists'
local weight = require 'lib/weight'

local turn_walk = {}
turn_walk.__index = turn_walk

local MOST_READ_AT_ONCE = 500

-- Whether the head of a list has its turn before the head of another.
local function is_before(one, other)
  if one.rank ~= other.rank then
    return one.rank < other.rank
  elseif one.key ~= other.key then
    return one.key < other.key
  end
  return one.ticket < other.ticket
end

-- Opens a list, or puts it back in its place: the next one is the last.
local function put(open, list)
  local low, high = 1, #open + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(open[middle], list) then
      high = middle
    else
      low = middle + 1
    end
  end
  table.insert(open, low, list)
end

local function new_list(rank, kind, id, key, ticket)
  return { rank = rank, kind = kind, id = id, key = key, ticket = ticket, entries = {}, position = 1, size = 2 }
end

-- Opens the lists of a kind, at most `most` groups. Returns whether these are all.
local function open_kind(self, keys, rank, kind, most)
  if kind == 'fifo' then
    put(self.open, new_list(rank, kind, lists.FIFO, 0, ''))
    return true
  end
  local heads = weight.add(redis.call('ZRANGE', lists.heads_name(keys, kind), 0, most - 1, 'WITHSCORES'), 2)
  for i = 1, #heads, 2 do
    local ticket, id = string.match(heads[i], '^(%d+):(.*)$')
    local list = new_list(rank, kind, id, tonumber(heads[i + 1]), ticket)
    list.head = heads[i]
    put(self.open, list)
  end
  return #heads < 2 * most
end

-- Begins a walk of at most `most` waiters. `read_entries(texts)`: from queue/heads.
function turn_walk.begin(keys, state, most, read_entries)
  local self = setmetatable({
    keys = keys, read_entries = read_entries, open = {}, taken = {}, touched = {}, virtual_time = state.virtual_time,
  }, turn_walk)
  for rank, kind in ipairs(state.lists) do
    -- Later ones have their turns only when this kind has none left.
    if not open_kind(self, keys, rank, kind, most) then
      break
    end
  end
  return self
end

-- The first waiter of a list that is not taken; nil if there is none. At first, two are read, since the second one is the head
-- once the first one is taken.
local function first_left(self, list)
  if list.position > #list.entries and not list.is_read then
    local from = list.last and '(' .. list.last or '[' .. list.id .. ' '
    local texts = redis.call('ZRANGE', self.keys.queue, from, '(' .. list.id .. '!', 'BYLEX', 'LIMIT', 0, list.size)
    weight.add(texts, 1)
    list.is_read = #texts < list.size
    list.last, list.size, list.position = texts[#texts], math.min(2 * list.size, MOST_READ_AT_ONCE), 1
    list.entries = self.read_entries(texts)
  end
  return list.entries[list.position]
end

-- The next waiter that is not stopped, and its list; nil if there is none.
function turn_walk:next()
  while #self.open > 0 do
    local list = self.open[#self.open]
    local entry = first_left(self, list)
    if entry then
      return entry, list
    end
    table.remove(self.open)
    list.is_over = true
    self.touched[#self.touched + 1] = list
  end
end

-- The order key of a list of which an entry has left.
local function key_after(virtual_time, list, entry, is_approved, following)
  if list.kind == 'fifo' then
    return list.key
  elseif list.kind == 'lane' then
    return lists.key_in_lane(following.ticket, following.list.parameter)
  end
  local share_before, share = entry.hits / entry.list.parameter, following.hits / following.list.parameter
  if is_approved then
    return list.key + share
  end
  return lists.tag_of_changed(virtual_time, list.key, share_before, share)
end

-- The next waiter leaves the queue.
function turn_walk:take(is_approved)
  local list = table.remove(self.open)
  local entry = list.entries[list.position]
  list.position = list.position + 1
  self.taken[#self.taken + 1] = entry.text
  if not list.is_touched then
    list.is_touched, self.touched[#self.touched + 1] = true, list
  end
  if is_approved and list.kind == 'group' then
    self.virtual_time = list.key
  end
  local following = first_left(self, list)
  if following then
    list.ticket = following.ticket
    list.key = key_after(self.virtual_time, list, entry, is_approved, following)
    put(self.open, list)
  else
    list.is_over = true
  end
end

-- The heads of these lists wait on, and nobody passes them in their lists. `stops(id)`: whether a list is stopped.
function turn_walk:stop(stops)
  local left = {}
  for _, list in ipairs(self.open) do
    if not stops(list.id) then
      left[#left + 1] = list
    end
  end
  self.open = left
end

-- Removes those who were taken from the queue.
function turn_walk:write(state)
  local keys = self.keys
  if #self.touched == 0 then
    return
  end
  chunks.call('ZREM', keys.queue, self.taken)
  local gone, new = { lane = {}, group = {} }, { lane = {}, group = {} }
  for _, list in ipairs(self.touched) do
    if list.head then
      table.insert(gone[list.kind], list.head)
      if not list.is_over then
        table.insert(new[list.kind], lists.format_key(list.key))
        table.insert(new[list.kind], list.ticket .. ':' .. list.id)
      end
    end
  end
  for _, kind in ipairs(lists.KINDS_WITH_HEADS) do
    chunks.call('ZREM', lists.heads_name(keys, kind), gone[kind])
    chunks.call('ZADD', lists.heads_name(keys, kind), new[kind])
  end
  state.virtual_time = self.virtual_time
  lists.end_empty_kinds(keys, state)
end

return turn_walk
