-- The lists of a queue whose waiters have lanes or groups. Inside a list: first come, first served. Between lists of one
-- kind, the list goes first whose head has the smallest order key:
--   lane    the ticket of the head less its head start
--   group   its tag: the virtual time at which it became the head, and its hits divided by the weight of its group
-- Between heads with the same key: first come, first served. Of the kinds, the one goes first that has had waiters for longer,
-- until it has none. `fifo` is the kind of waiters without a lane or a group, which joined by other rules. It has one list.
--
-- Names in Redis:
--   queue         a sorted set of the entries of all lists (queue/entries), with score 0: a list is a range of it
--   heads:lane    a sorted set of the lanes with waiters, `<ticket of the head>:<list>`, by their order keys
--   heads:group   the same of the groups, but for those that are stopped
--   heads:stopped the heads of groups that lack room in a limit of their own, or are paused (limits/group-limits), and stop nobody
--                 else: by when they may have room, in ms since 1970
-- A list is `<kind>:<name>`, with the name percent-encoded.
--
-- The state's field `lists` has the kinds with waiters, the first one first. It is absent in a key with one list
-- (queue/entries): other keys need no look at these names, which are built here.
--
-- Groups are served by self-clocked fair queueing (Golestani 1994). The virtual time is the tag that was served last, 0 while no
-- group waits: the state's field `virtual_time`. So for two groups that wait, the hits that each gets, divided by its
-- weight, never differ by more than the largest request of each. A group that has left owes nothing, since its tag is over,
-- and groups that come once do not pass one that waits without end, as they would if each began with the tag that was served
-- last, as in start-time fair queueing.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local entries = require 'queue/entries'
local reads = require 'lib/reads'

local lists = {
  FIFO = 'fifo:',
  KINDS_WITH_HEADS = { 'lane', 'group', 'stopped' },
}

function lists.heads_name(keys, kind)
  return keys.state .. ':heads:' .. kind
end

local function built_names(keys)
  return lists.heads_name(keys, 'lane'), lists.heads_name(keys, 'group'), lists.heads_name(keys, 'stopped')
end

function lists.kind_of(id)
  return string.sub(id, 1, string.find(id, ':', 1, true) - 1)
end

-- The id of a list; nil for none.
function lists.id_of(list)
  return list and list.id
end

-- The same if it is a lane, else nil.
function lists.lane_of(list)
  return list and list.kind == 'lane' and list.id or nil
end

-- Order keys are read back as they were.
function lists.format_key(key)
  return string.format('%.17g', key)
end

function lists.expire(keys, state, expire_at)
  for _, kind in ipairs(state.lists or {}) do
    redis.call('PEXPIREAT', lists.heads_name(keys, kind), expire_at)
    if kind == 'group' and state.groups then
      redis.call('PEXPIREAT', lists.heads_name(keys, 'stopped'), expire_at)
    end
  end
end

-- `has_lost`: there may be heads that the state does not know.
function lists.drop(keys, state, has_lost)
  if state.lists or has_lost then
    for _, head in ipairs(state.groups and lists.heads_due(keys, '+inf', -1) or {}) do
      local _, id = lists.split_head(head)
      state.groups:of(id).tag = nil
    end
    redis.call('UNLINK', built_names(keys))
    state.lists, state.virtual_time = nil, 0
  end
end

-- The first entries of a list. `most`: how many; -1 for all.
function lists.first_of(keys, id, most)
  return reads.add(redis.call('ZRANGE', keys.queue, '[' .. id .. ' ', '(' .. id .. '!', 'BYLEX', 'LIMIT', '0', digits(most)), 1)
end

function lists.split_head(head)
  return string.sub(head, 1, entries.TICKET), string.sub(head, entries.TICKET + 2)
end

-- The order key of a lane by the ticket of its head, and the head start in ms that this came with.
function lists.key_in_lane(ticket, head_start)
  return tonumber(ticket) - head_start * 1000
end

-- Somebody may have removed the record of a waiter.
local function parameter_of(waiter, default)
  return waiter.list and waiter.list.parameter or default
end

local function key_of_lane(head)
  return lists.key_in_lane(head.ticket, parameter_of(head, 0))
end

-- What a waiter of a group adds to its tag.
function lists.share_of(waiter)
  return waiter.hits / parameter_of(waiter, 1)
end

-- The first waiter of a list; nil if it has none.
function lists.first_waiter(keys, id)
  local entry = lists.first(keys, id)
  return entry and entries.read(keys, { entry })[1]
end

-- The order key of a list that has another head now, though nobody was approved. `key`: before. Equal shares must not change
-- the tag of a group by rounding. No tag is below the virtual time: while a large head waits and then leaves, its group saves up
-- no turns.
function lists.key_of_changed(virtual_time, kind, key, before, now)
  if kind == 'lane' then
    return key_of_lane(now)
  end
  local share_before, share = lists.share_of(before), lists.share_of(now)
  return share_before == share and key or math.max(virtual_time, key - share_before + share)
end

-- Whether any group is stopped.
function lists.has_stopped(keys, state)
  return state.groups ~= nil and redis.call('ZCARD', lists.heads_name(keys, 'stopped')) > 0
end

local function is_empty(keys, state, kind)
  if kind == 'fifo' then
    return #lists.first_of(keys, lists.FIFO, 1) == 0
  end
  return redis.call('ZCARD', lists.heads_name(keys, kind)) == 0 and not (kind == 'group' and lists.has_stopped(keys, state))
end

-- Until when the group that may have room first is stopped, later than `after`, in ms since 1970; nil if none is.
function lists.first_stopped_until(keys, after)
  if keys.are_all_back then
    return nil
  end
  local name = lists.heads_name(keys, 'stopped')
  return tonumber(redis.call('ZRANGE', name, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2])
end

-- The heads of at most `most` groups that are stopped no later than this.
function lists.heads_due(keys, now_ms, most)
  local until_ms = keys.are_all_back and '+inf' or now_ms
  return reads.add(redis.call('ZRANGE', lists.heads_name(keys, 'stopped'), '-inf', until_ms, 'BYSCORE', 'LIMIT', 0, most), 1)
end

-- The time of all members of a sorted set has come, whose scores are times.
function lists.make_all_due(name)
  local scored = {}
  for _, member in ipairs(reads.add(redis.call('ZRANGE', name, 0, -1), 1)) do
    scored[#scored + 1], scored[#scored + 2] = 0, member
  end
  chunks.call('ZADD', name, scored)
end

-- All groups that are stopped may have room.
function lists.bring_all_back(keys)
  if keys.is_read_only then
    keys.are_all_back = true
  else
    lists.make_all_due(lists.heads_name(keys, 'stopped'))
  end
end

-- The head of a list in the order of turns, if it is this entry.
function lists.head_of(entry, id)
  return entries.ticket_of(entry) .. ':' .. id
end

-- The entry of the head of a group that is stopped; nil if it is not.
function lists.stopped_head(keys, id)
  local entry = lists.first(keys, id)
  local is_stopped = entry and redis.call('ZSCORE', lists.heads_name(keys, 'stopped'), lists.head_of(entry, id))
  return is_stopped and entry or nil
end

-- A group that is stopped may have room now.
function lists.bring_back_later(keys, id)
  local head = lists.first(keys, id)
  if head then
    redis.call('ZADD', lists.heads_name(keys, 'stopped'), 'XX', 0, lists.head_of(head, id))
  end
end

-- Takes a head out of the order of turns. Returns its order key, nil if it was not there, and, for a group that is stopped, until when.
local function take_head(keys, state, kind, head, id)
  local name = lists.heads_name(keys, kind)
  local key = tonumber(redis.call('ZSCORE', name, head))
  if key or kind ~= 'group' or not state.groups then
    redis.call('ZREM', name, head)
    return key
  end
  local stopped_name = lists.heads_name(keys, 'stopped')
  local stopped_until = redis.call('ZSCORE', stopped_name, head)
  redis.call('ZREM', stopped_name, head)
  return stopped_until and state.groups:of(id).tag, stopped_until
end

-- Puts a head into the order of turns. `stopped_until`: of a group that is stopped, which has room for its new head, perhaps.
local function put_head(keys, state, kind, key, head, id, stopped_until)
  if stopped_until then
    state.groups:of(id).tag, state.groups:of(id).has_room = key, true
    redis.call('ZADD', lists.heads_name(keys, 'stopped'), stopped_until, head)
  else
    redis.call('ZADD', lists.heads_name(keys, kind), lists.format_key(key), head)
  end
end

function lists.end_empty_kinds(keys, state)
  local left = {}
  -- Heads that have replaced all others have no expiry.
  state.needs_expiry = true
  for _, kind in ipairs(state.lists) do
    if not is_empty(keys, state, kind) then
      left[#left + 1] = kind
    elseif kind == 'group' then
      state.virtual_time = 0
    end
  end
  state.lists = left
end

local function has_kind(state, kind)
  for _, other in ipairs(state.lists or {}) do
    if other == kind then
      return true
    end
  end
  return false
end

local function begin_kind(state, kind)
  if not has_kind(state, kind) then
    table.insert(state.lists, kind)
  end
end

-- A check is approved at once, as if it had joined the queue and had its turn. `list`: its lane or group, or nil.
function lists.approve_at_once(state, list, hits)
  if list and list.kind == 'group' and has_kind(state, 'group') then
    state.virtual_time = state.virtual_time + hits / list.parameter
  end
end

-- The entry of a waiter. `replica_id`: under which its place counts.
function lists.format_entry(waiter, replica_id)
  return (waiter.list and waiter.list.id or lists.FIFO) .. ' ' .. entries.format(waiter, replica_id)
end

-- Adds waiters to one list, which may be in any order. Their records are there. `new`: of each its entry, `text`.
local function add_to(keys, state, id, new)
  table.sort(new, function(a, b)
    return a.text < b.text
  end)
  local kind, scored = lists.kind_of(id), {}
  for _, waiter in ipairs(new) do
    scored[#scored + 1], scored[#scored + 2] = '0', waiter.text
  end
  local before, head = lists.first(keys, id), new[1]
  begin_kind(state, kind)
  chunks.call('ZADD', keys.queue, scored)
  if kind == 'fifo' or (before and before < head.text) then
    return
  end
  local key, stopped_until = kind == 'lane' and key_of_lane(head) or state.virtual_time + lists.share_of(head), nil
  if before then
    local key_before
    key_before, stopped_until = take_head(keys, state, kind, lists.head_of(before, id), id)
    key = lists.key_of_changed(state.virtual_time, kind, key_before or key, entries.read(keys, { before })[1], head)
  end
  put_head(keys, state, kind, key, lists.head_of(head.text, id), id, stopped_until)
end

-- Calls `act(keys, state, id, waiters)` for each list of these waiters, in the order of the first ones.
local function for_each_list(keys, state, waiters, act)
  local by_list, ids = {}, {}
  for _, waiter in ipairs(waiters) do
    local id = waiter.list and waiter.list.id or lists.FIFO
    if not by_list[id] then
      by_list[id], ids[#ids + 1] = {}, id
    end
    table.insert(by_list[id], waiter)
  end
  for _, id in ipairs(ids) do
    act(keys, state, id, by_list[id])
  end
end

-- Adds waiters to their lists. `new`: as above.
function lists.add(keys, state, new)
  for_each_list(keys, state, new, add_to)
end

-- The queue has several lists from now on, or again. `waiting`: as above, all of its waiters so far.
function lists.begin(keys, state, waiting)
  redis.call('UNLINK', keys.queue, built_names(keys))
  state.lists = {}
  lists.add(keys, state, waiting)
end

function lists.length(keys)
  return redis.call('ZCARD', keys.queue)
end

function lists.all(keys)
  return reads.add(redis.call('ZRANGE', keys.queue, 0, -1), 1)
end

-- The first entry of one list; nil if it has none.
function lists.first(keys, id)
  return lists.first_of(keys, id, 1)[1]
end

-- How many entries a list has, or has before one that starts with a text.
function lists.count(keys, id, start)
  return redis.call('ZLEXCOUNT', keys.queue, '[' .. id .. ' ', '(' .. id .. (start and ' ' .. start or '!'))
end

-- The entry of a waiter in a list; nil if it has none.
local function find_entry(keys, id, waiter)
  local start = id .. ' ' .. entries.start_of(waiter)
  return redis.call('ZRANGE', keys.queue, '[' .. start .. '@', '(' .. start .. 'A', 'BYLEX', 'LIMIT', 0, 1)[1]
end

-- Waiters leave a list without an approval. Their records are still there.
local function remove_from(keys, state, id, waiters)
  local kind, gone, head = lists.kind_of(id), {}, lists.first_waiter(keys, id)
  for _, waiter in ipairs(waiters) do
    gone[#gone + 1] = find_entry(keys, id, waiter)
  end
  reads.read = reads.read + #waiters
  chunks.call('ZREM', keys.queue, gone)
  local first = kind ~= 'fifo' and lists.first_waiter(keys, id) or nil
  if kind == 'fifo' or (first and first.text == head.text) then
    return
  end
  local key, stopped_until = take_head(keys, state, kind, lists.head_of(head.text, id), id)
  if first then
    key = lists.key_of_changed(state.virtual_time, kind, key or state.virtual_time, head, first)
    put_head(keys, state, kind, key, lists.head_of(first.text, id), id, stopped_until)
  elseif stopped_until then
    state.groups:of(id).tag = nil
  end
end

-- The same for waiters of any lists.
function lists.remove(keys, state, waiters)
  for_each_list(keys, state, waiters, remove_from)
  lists.end_empty_kinds(keys, state)
end

-- Finds the heads again from the entries. All groups begin again. Without the state, a withdrawal leaves its entry here.
local function restore_heads(keys, state)
  lists.begin(keys, state, entries.read_waiting(keys, lists.all(keys)))
  state.needs_expiry = true
end

local function has_lost_heads(keys, state)
  for _, kind in ipairs(state.lists) do
    if is_empty(keys, state, kind) then
      return true
    end
  end
  return false
end

-- Somebody may have removed the heads, or the state that knew the lists.
function lists.repair(keys, state)
  if not state.lists or has_lost_heads(keys, state) then
    restore_heads(keys, state)
  end
end

-- Without the state, tells a look which kinds have waiters.
function lists.find_leftovers(keys, state)
  state.lists = {}
  for _, kind in ipairs({ 'fifo', 'group', 'lane' }) do
    if not is_empty(keys, state, kind) then
      table.insert(state.lists, kind)
    end
  end
end

return lists
