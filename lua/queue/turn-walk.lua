-- A walk over the waiters of several lists (queue/lists) in the order of their turns, which changes nothing until it is
-- written. queue/entries has the same for one list.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local entries = require 'queue/entries'
local group_limits = require 'limits/group-limits'
local lists = require 'queue/lists'
local reads = require 'lib/reads'

local turn_walk = {}
turn_walk.__index = turn_walk

local MOST_READ_AT_ONCE = 500
-- A call brings back this many groups that were stopped, and those in which it has made room.
local MOST_BROUGHT_BACK = 500
-- As many lanes as a rule may have.
local LEAST_OPENED = 5

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

-- The place of a kind in the order of kinds.
local function rank_in(kinds, kind)
  for rank, each in ipairs(kinds) do
    if each == kind then
      return rank
    end
  end
end

local function touch(self, list)
  if not list.is_touched then
    list.is_touched, self.touched[#self.touched + 1] = true, list
  end
end

-- Groups that were stopped have their turns again, if they may have room by now, or the call has made it. They gain nothing from
-- having been stopped: the tag of each is at least the tag of a new head.
local function bring_back(self, state, now_ms)
  local heads, seen = lists.heads_due(self.keys, now_ms, MOST_BROUGHT_BACK), {}
  self.has_more = #heads == MOST_BROUGHT_BACK
  for _, id in ipairs(state.groups:take_changed()) do
    local entry = lists.stopped_head(self.keys, id)
    heads[#heads + 1] = entry and lists.head_of(entry, id)
  end
  for _, head in ipairs(heads) do
    local ticket, id = lists.split_head(head)
    local group, rank = state.groups:of(id), rank_in(self.kinds, 'group')
    if rank and not seen[head] then
      seen[head], group.is_back = true, true
      local waiter = lists.first_waiter(self.keys, id)
      local list = new_list(rank, 'group', id, math.max(group.tag or 0, self.virtual_time + lists.share_of(waiter)), ticket)
      list.head, list.was_stopped = head, true
      touch(self, list)
      put(self.open, list)
    end
  end
end

-- Begins a walk that is to take `most` waiters: as many lists are opened first, and more as they are needed, since others
-- may be stopped or have only dead waiters.
--   open     the open lists, the next one last
--   kinds    the kinds of lists, the first one first
--   rank     of the kind whose lists are being opened
--   opened   how many lists of this kind have been opened: in the order of their turns as the walk began
--   last     where the last of these was in the order
--   stops    what the walk has been told to stop
--   stopped  lists that are stopped: id -> list
--   over     the ids of lists that have no waiters left
--   has_more whether more groups may be brought back
function turn_walk.begin(keys, state, most, now_ms)
  local walk = setmetatable({
    keys = keys, state = state, open = {}, taken = {}, touched = {}, virtual_time = state.virtual_time,
    kinds = state.lists, rank = 1, opened = 0, at_once = math.max(most, LEAST_OPENED), stops = {}, stopped = {},
    over = {},
  }, turn_walk)
  if state.groups then
    bring_back(walk, state, now_ms)
  end
  return walk
end

local function is_stopped(self, id)
  for _, stops in ipairs(self.stops) do
    if stops(id) then
      return true
    end
  end
  return false
end

local function open_list(self, list)
  if is_stopped(self, list.id) then
    self.stopped[list.id] = list
  else
    put(self.open, list)
  end
end

local function open_more(self)
  local kind, heads = self.kinds[self.rank], {}
  if kind == 'fifo' then
    open_list(self, new_list(self.rank, kind, lists.FIFO, 0, ''))
  else
    local from, to = self.opened, self.opened + self.at_once - 1
    heads = reads.add(redis.call('ZRANGE', lists.heads_name(self.keys, kind), digits(from), digits(to), 'WITHSCORES'), 2)
  end
  for i = 1, #heads, 2 do
    local ticket, id = lists.split_head(heads[i])
    local list = new_list(self.rank, kind, id, tonumber(heads[i + 1]), ticket)
    list.head = heads[i]
    self.last = { rank = list.rank, key = list.key, ticket = list.ticket }
    open_list(self, list)
  end
  self.opened = self.opened + #heads / 2
  if #heads < 2 * self.at_once then
    self.rank, self.opened, self.last = self.rank + 1, 0, nil
  end
end

-- Whether a list that is not open may have its turn before those that are.
local function may_miss_one(self)
  local first = self.open[#self.open]
  if not self.kinds[self.rank] then
    return false
  elseif not first or first.rank > self.rank then
    return true
  end
  return first.rank == self.rank and (not self.last or is_before(self.last, first))
end

-- The first waiter of a list that is not taken; nil if there is none. At first, two are read, since the second one is the head
-- once the first one is taken.
local function first_left(self, list)
  if list.position > #list.entries and not list.is_read then
    local from = list.last and '(' .. list.last or '[' .. list.id .. ' '
    local texts = redis.call('ZRANGE', self.keys.queue, from, '(' .. list.id .. '!', 'BYLEX', 'LIMIT', '0', digits(list.size))
    reads.add(texts, 1)
    list.is_read = #texts < list.size
    list.last, list.size, list.position = texts[#texts], math.min(2 * list.size, MOST_READ_AT_ONCE), 1
    list.entries = entries.read(self.keys, texts)
  end
  return list.entries[list.position]
end

-- The next waiter that is not stopped, and its list; nil if there is none.
function turn_walk:next()
  while true do
    while may_miss_one(self) do
      open_more(self)
    end
    local list = self.open[#self.open]
    if not list then
      return nil
    end
    local entry = first_left(self, list)
    if entry then
      return entry, list
    end
    table.remove(self.open)
    self.over[list.id] = true
    touch(self, list)
  end
end

-- The order key of a list of which an entry has left.
local function key_after(virtual_time, list, entry, is_approved, following)
  if list.kind == 'fifo' then
    return list.key
  elseif list.kind == 'group' and is_approved then
    return list.key + lists.share_of(following)
  end
  return lists.key_of_changed(virtual_time, list.kind, list.key, entry, following)
end

function turn_walk:take(is_approved)
  local list = table.remove(self.open)
  local entry = list.entries[list.position]
  list.position = list.position + 1
  self.taken[#self.taken + 1] = entry.text
  touch(self, list)
  if is_approved and list.kind == 'group' then
    self.virtual_time = list.key
  end
  local following = first_left(self, list)
  if following then
    list.ticket = entries.ticket_of(following.text)
    list.key = key_after(self.virtual_time, list, entry, is_approved, following)
    put(self.open, list)
  else
    self.over[list.id] = true
  end
end

function turn_walk.all()
  return true
end

-- The heads of these lists wait on, and nobody passes them in their lists. `stops(id)`: whether a list is stopped, or
-- `turn_walk.all`. `head`: of a group that stops nobody else.
function turn_walk:stop(stops, head)
  local next_list = self.open[#self.open]
  if head and next_list.kind == 'group' then
    next_list.stopped_head = head
    touch(self, next_list)
  end
  local left = {}
  for _, list in ipairs(self.open) do
    if stops(list.id) then
      self.stopped[list.id] = list
    else
      left[#left + 1] = list
    end
  end
  self.open = left
  if stops == turn_walk.all then
    self.rank = #self.kinds + 1
  else
    table.insert(self.stops, stops)
  end
end

-- A list comes first, whether it was stopped or not.
function turn_walk:begin_with(kind, id)
  local list = self.stopped[id] or not self.over[id] and new_list(0, kind, id, 0, '')
  self.stopped[id] = nil
  for i, open in ipairs(self.open) do
    if open.id == id then
      list = table.remove(self.open, i)
      break
    end
  end
  if list then
    list.rank = 0
    table.insert(self.open, list)
  end
end

local function has_left(self, kind)
  for _, some in ipairs({ self.open, self.stopped }) do
    for _, list in pairs(some) do
      if list.kind == kind then
        return true
      end
    end
  end
  return false
end

-- When a kind has its turn that has waiters left: the kind with the least rank goes first. Others come last.
function turn_walk:rank_of(kind)
  for rank, each in ipairs(self.kinds) do
    if each == kind then
      while self.rank == rank and not has_left(self, kind) do
        open_more(self)
      end
      local has_stopped = kind == 'group' and lists.has_stopped(self.keys, self.state)
      return (self.rank < rank or has_left(self, kind) or has_stopped) and rank or math.huge
    end
  end
  return math.huge
end

-- Until when a group is stopped, after others were approved.
local function stopped_until(state, list)
  return group_limits.stopped_until(state, state.groups:of(list.id), list.stopped_head.hits)
end

-- The hits of the head that stops its group alone, by the id of the group, as it would be written; nil if the group is not stopped.
function turn_walk:hits_of_stopped(id)
  for _, list in ipairs(self.touched) do
    if list.id == id then
      return list.stopped_head and list.stopped_head.hits
    end
  end
  local head = lists.stopped_head(self.keys, id)
  return head and entries.read(self.keys, { head })[1].hits
end

-- When the first group that is stopped may have room, as it would be written; nil if none is.
function turn_walk:stopped_until(state, now_ms)
  local time = lists.first_stopped_until(self.keys, now_ms)
  for _, list in ipairs(self.touched) do
    if list.stopped_head then
      time = math.min(time or math.huge, stopped_until(state, list))
    end
  end
  return time
end

-- Whether a write changes anything.
function turn_walk:has_touched()
  return #self.touched > 0
end

local function add(by_kind, kind, text)
  by_kind[kind] = by_kind[kind] or {}
  table.insert(by_kind[kind], text)
end

function turn_walk:write(state)
  local keys = self.keys
  if #self.touched == 0 then
    return
  end
  chunks.call('ZREM', keys.queue, self.taken)
  local gone, new = {}, {}
  for _, list in ipairs(self.touched) do
    if list.head then
      add(gone, list.was_stopped and 'stopped' or list.kind, list.head)
      if not self.over[list.id] then
        local kind = list.stopped_head and 'stopped' or list.kind
        add(new, kind, list.stopped_head and stopped_until(state, list) or lists.format_key(list.key))
        add(new, kind, list.ticket .. ':' .. list.id)
      end
      if state.groups and list.kind == 'group' then
        state.groups:of(list.id).tag = list.stopped_head and list.key or nil
      end
    end
  end
  for kind, some in pairs(gone) do
    chunks.call('ZREM', lists.heads_name(keys, kind), some)
  end
  for kind, some in pairs(new) do
    chunks.call('ZADD', lists.heads_name(keys, kind), some)
  end
  state.virtual_time = self.virtual_time
  lists.end_empty_kinds(keys, state)
end

return turn_walk
