-- The limits of a key, `state.limits`: its own limit first, which is also `state.own`, then the further limits in the
-- order of the rules. A check takes from all limits or from none. Each limit has windows of its own, back to back from
-- the check that was the first under it. Those of the own limit are the windows of the key.

local digits = require 'lib/digits'
local held = require 'limits/held'
local json = require 'lib/json'
local kinds = require 'limits/kinds'
local own_ids = require 'limits/own-ids'

local key_limits = {}

-- Gives a state the limits of parsed rules (lib/limits-text), with windows that begin at `start` and have no approvals.
function key_limits.begin(state, rules, start)
  state.limits, state.further_text = {}, rules.further_text
  state.of_groups, state.groups_text = rules.of_groups, rules.groups_text
  for i, declared in ipairs(rules.limits) do
    state.limits[i] = kinds.begin(declared, start)
  end
  state.own = state.limits[1]
end

-- Tells the limits of a state what the caller says of their calendars.
function key_limits.take_calendars(state, call)
  for _, limit in ipairs(state.limits) do
    if limit.window_varies then
      limit.windows = call.rules.calendars[limit.parameter]
    end
  end
end

-- What is stored of limits with names: an object with `start`, `used` and the fields of its kind for each, by its name.
-- `first`: the number of the first one. `stored`: the same as a table; nil for nothing.
function key_limits.read_counts(state, limit, stored)
  local of_limit = stored and stored[limit.name]
  if of_limit then
    limit.start, limit.used = of_limit.start, of_limit.used
    limit:read(state, of_limit)
  end
end

function key_limits.format_counts(limits, first)
  local fields = ''
  for i = first, #limits do
    local limit = limits[i]
    local counts = string.format('"start":%.0f,"used":%.0f', limit.start, limit.used)
    fields = json.add(fields, limit.name, json.object(json.join(counts, limit:format())))
  end
  return json.object(fields)
end

-- The limit with this name among those of a state or of rules: the key's own limit for ''; nil if there is none.
function key_limits.named(limits, name)
  for _, limit in ipairs(limits) do
    if (limit.name or '') == name then
      return limit
    end
  end
end

function key_limits.forget_ids(keys, limit)
  redis.call('UNLINK', unpack(limit:built_names(keys)))
end

-- Whether waiters are let go at an even pace.
function key_limits.have_pace(state)
  for _, limit in ipairs(state.limits) do
    if limit.has_pace then
      return true
    end
  end
  return #state.of_groups > 0 and kinds.have_pace(state.of_groups)
end

-- Forgets the ids that are stored under the names of `forgotten`, so that `limit` has none. A call that only looks leaves
-- them, and counts them no longer.
function key_limits.begin_without_ids(keys, forgotten, limit)
  if keys.is_read_only then
    limit.has_no_ids = true
  else
    key_limits.forget_ids(keys, forgotten)
  end
end

-- A limit of other rules goes on with what was approved under the one before.
local function continue_as(keys, call, before, limit)
  before:continue_as(limit, call.now_ms)
  limit.has_no_ids = before.has_no_ids
  if keys.is_read_only then
    return
  end
  for _, name in ipairs(limit:built_names(keys)) do
    redis.call('PEXPIREAT', name, digits(limit:kept_until()))
  end
end

-- A longer window of other rules may end after the key would be removed.
local function keep_while_counted(state, limit)
  if limit.used > 0 then
    state.expires = math.max(state.expires, limit:counts_until())
  end
end

-- The own limit of rules comes into force, which is no fixed window or follows one that is none: another kind, another
-- calendar, or another length of the windows. What counts now goes on to count, as a sum without ids if the kind or its steps are others.
function key_limits.take_own(keys, state, declared, call)
  local before = state.own
  local own = kinds.begin(declared, call.now_ms)
  own.max = state.max_is_set and before.max or declared.max
  own:move(call.now_us)
  if before:continues_as(own) then
    continue_as(keys, call, before, own)
  else
    key_limits.begin_without_ids(keys, before, own)
    -- A state that was lost alone has left others.
    key_limits.begin_without_ids(keys, own, own)
    if not own.has_boundary then
      -- Its ids have the names of hits.
      state.hits = 0
      own.start = before.start
      own:roll(state, call.now_ms)
    end
    own:hold(held.counted_by(own, state))
    own:carry(state, before:sum(state))
  end
  state.limits[1], state.own, state.made_room = own, own, true
  keep_while_counted(state, own)
  state.window_is_set = false
  state.next_window = 0
end

-- Asks all limits to do something. Returns whether any of them says yes.
function key_limits.ask_all(state, question, ...)
  local any = false
  for _, limit in ipairs(state.limits) do
    any = limit[question](limit, ...) or any
  end
  return any
end

-- The queue is served, perhaps later than there was room, or nobody waits any more.
function key_limits.serve(state, is_serving)
  key_limits.ask_all(state, is_serving and 'begin_serving' or 'end_serving')
  if state.groups then
    state.groups:serve(is_serving)
  end
end

-- Moves the further limits to the windows that hold `now_ms`. Returns the limits whose windows have ended.
function key_limits.roll_further(state, now_ms)
  local ended = {}
  for i = 2, #state.limits do
    local limit = state.limits[i]
    if limit:roll(state, now_ms, limit.window) then
      ended[#ended + 1] = limit
    end
  end
  return ended
end

-- Returns the limits of other rules, declared. One that there was `before` goes on, if it counts in the same way. `begin(declared)`
-- begins a limit.
function key_limits.change_limits(keys, state, call, limits_before, declared, begin)
  local before, limits = {}, {}
  for _, limit in ipairs(limits_before) do
    before[limit.name] = limit
  end
  for i, each in ipairs(declared) do
    local limit = begin(each)
    limit:move(call.now_us)
    local kept = before[limit.name]
    local counts_alike = kept and kept.counts == limit.counts and kept.keeps == limit.keeps
      and kept.lanes_text == limit.lanes_text
    if counts_alike and kept:continues_as(limit) then
      before[limit.name] = nil
      continue_as(keys, call, kept, limit)
    else
      -- Ids may be left from before the key was idle.
      key_limits.begin_without_ids(keys, limit, limit)
      limit:hold(held.counted_by(limit, state))
      if counts_alike then
        limit:carry(state, kept:sum(state))
      end
    end
    limits[i] = limit
  end
  for _, limit in pairs(before) do
    key_limits.begin_without_ids(keys, limit, limit)
  end
  return limits
end

-- The further limits of rules come into force.
function key_limits.take_further(keys, state, rules, call)
  if state.further_text == rules.further_text then
    return
  end
  local function begin(declared)
    return kinds.begin(declared, call.now_ms)
  end
  local limits = key_limits.change_limits(
    keys, state, call, { unpack(state.limits, 2) }, { unpack(rules.limits, 2) }, begin
  )
  for _, limit in ipairs(limits) do
    keep_while_counted(state, limit)
  end
  table.insert(limits, 1, state.own)
  state.limits, state.further_text, state.made_room = limits, rules.further_text, true
  if (#state.of_groups > 0) ~= (#rules.of_groups > 0) then
    -- Nothing that groups had counts from now on.
    state.groups_number, state.groups_are_new = state.groups_number + 1, true
  end
  state.of_groups, state.groups_text = rules.of_groups, rules.groups_text
end

-- The group (limits/group-limits) of a list; nil if it is none, or no group has anything to itself. Checks in all keys ask for it, so
-- callers look for `state.groups` first.
local function group_of(state, list)
  return state.groups and list and state.groups:of(list)
end

-- The limits that count a list, or, without one, those that count all lists, among them the own one.
function key_limits.counting(state, list)
  if not state.groups and #state.limits == 1 then
    return state.limits
  end
  local limits, group = {}, group_of(state, list)
  for _, limit in ipairs(state.limits) do
    limits[#limits + 1] = limit:counts_list(list) and limit or nil
  end
  for _, limit in ipairs(group and group.limits or {}) do
    limits[#limits + 1] = limit
  end
  return limits
end

-- What counts in the group of a list changes, if it is one.
local function note_change(state, list)
  local group = state.groups and group_of(state, list)
  if group then
    group.is_changed = true
  end
end

-- All limits in which an approval of a list may count.
local function all_of(state, list)
  local group = group_of(state, list)
  if not group then
    return state.limits
  end
  local limits = { unpack(state.limits) }
  for _, limit in ipairs(group.limits) do
    limits[#limits + 1] = limit
  end
  return limits
end

function key_limits.is_group_paused(state, list)
  local group = group_of(state, list)
  return group ~= nil and group.paused_until > 0
end

-- Whether the hits fit into all limits that count a list, and its group is not paused.
function key_limits.fit(state, hits, list)
  if state.groups and key_limits.is_group_paused(state, list) then
    return false
  end
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if not limit:fits(hits) then
      return false
    end
  end
  return true
end

-- Whether any of them has a maximum of 0, so that no turn ever comes.
function key_limits.is_any_closed(state, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if limit.max == 0 then
      return true
    end
  end
  return false
end

function key_limits.is_any_below(state, hits, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if limit:is_below(hits) then
      return true
    end
  end
  return false
end

-- How many more ids a limit may keep. The ids of unclaimed approvals that are held no more once they are claimed may come
-- later: until then they are kept with their holds.
local function free_ids(keys, state, call, limit, is_held)
  local free = limit.has_no_ids and call.max_ids or limit:free_ids(keys, state, call, is_held)
  return limit:keeps_id_of(true) and free or free - state.unclaimed
end

-- Whether the key has no room for the group of a list, of which nothing is stored.
function key_limits.is_full_for_group(state, list)
  return #state.of_groups > 0 and group_of(state, list) ~= nil and state.groups:is_full_for(list)
end

-- Whether each limit that counts a list keeps the id of one more approval, and the key its group.
function key_limits.have_free_ids(keys, state, call, is_held, list)
  if key_limits.is_full_for_group(state, list) then
    return false
  end
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if free_ids(keys, state, call, limit, is_held) <= 0 then
      return false
    end
  end
  return true
end

-- What is left for waiters of each limit, to be taken by `key_limits.take_left`. Limits of groups are looked at when they are asked for.
function key_limits.left(keys, state, call)
  local left = {}
  local function look_at(_, limit)
    left[limit] = { free = limit:free(), ids = free_ids(keys, state, call, limit, false) }
    return left[limit]
  end
  for _, limit in ipairs(state.limits) do
    look_at(left, limit)
  end
  return state.groups and setmetatable(left, { __index = look_at }) or left
end

-- Whether what is left has no room for the id of an approval, of one that is not held at least.
function key_limits.lacks_ids(left)
  for _, of_limit in pairs(left) do
    if of_limit.ids <= 0 then
      return true
    end
  end
  return false
end

-- Takes what a waiter needs of what is left. If it does not fit, takes nothing, and returns the limits in which it lacks room,
-- and whether any lacks room for its id. `list`: its lane or group, or nil.
function key_limits.take_left(state, left, hits, is_held, list)
  local limits, lacking, lacks_ids = key_limits.counting(state, list), nil, false
  if state.groups and key_limits.is_group_paused(state, list) then
    lacking = { group_of(state, list) }
  end
  for _, limit in ipairs(limits) do
    local lacks_id = limit:keeps_id_of(is_held) and left[limit].ids <= 0
    if lacks_id or not limit:fits_into(left[limit].free, hits) then
      lacking, lacks_ids = lacking or {}, lacks_ids or lacks_id
      lacking[#lacking + 1] = limit
    end
  end
  if lacking then
    return lacking, lacks_ids
  end
  for _, limit in ipairs(limits) do
    left[limit].free = left[limit].free - limit:taken_of(hits)
    left[limit].ids = left[limit].ids - (limit:keeps_id_of(is_held) and 1 or 0)
  end
end

-- This number of hits and ids more are held in a list, or without one.
function key_limits.hold(state, hits, ids, list)
  note_change(state, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    limit:hold(hits, ids)
  end
end

-- Takes what an approval needs of each limit that counts its list, except what a hold takes.
function key_limits.take(keys, state, call, id, hits, is_held, list)
  note_change(state, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    limit:take(keys, state, call, id, hits, is_held)
  end
end

-- An approval counts no longer because it is held, but as it would have without a hold. A limit that has taken what it needs,
-- though it is held, takes no more.
function key_limits.take_from_hold(keys, state, call, id, hits, list)
  note_change(state, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if not limit:keeps_id_of(true) then
      limit:take(keys, state, call, id, hits, false)
    elseif limit == state.own then
      own_ids.remember(keys, state, call, id)
    end
  end
end

-- Changes an approval in all limits that have it. `list`: of its request, if there is a record. Returns whether any has it, other than as
-- a held one.
local function change_in_all(state, list, change, ...)
  local any = false
  for _, limit in ipairs(all_of(state, list)) do
    local has_changed = limit[change](limit, ...)
    if has_changed and limit.group then
      limit.group.is_changed = true
    end
    any = has_changed or any
  end
  return any
end

-- Gives back what an approval takes of each limit.
function key_limits.give_back(keys, state, id, list, is_held, is_unused)
  return change_in_all(state, list, 'give_back', keys, state, id, is_held, is_unused)
end

-- Gives an approval other hits.
function key_limits.amend(keys, state, id, list, hits, is_held)
  return change_in_all(state, list, 'amend', keys, state, id, hits, is_held)
end

-- A check that is denied takes what is left of the fixed windows by hits that lack room for it, as if a vendor had reported that
-- nothing remains.
function key_limits.take_rest(state, call, hits, list)
  for _, limit in ipairs(key_limits.counting(state, list)) do
    if limit.has_boundary and limit.counts == 'hits' and limit:free() > 0 and not limit:fits(hits) then
      limit:report(state, call, 0)
      note_change(state, list)
    end
  end
end

-- Gives hits back without the approvals that took them, in the fixed windows that count a lane, or, without one, all checks.
-- Returns how many the own limit has given back.
function key_limits.refund(keys, state, hits, lane)
  local of_own = 0
  for _, limit in ipairs(key_limits.counting(state, lane)) do
    if limit.has_boundary then
      local refunded = limit:refund(state, hits)
      if refunded > 0 then
        note_change(state, lane)
      end
      if limit == state.own and refunded > 0 then
        own_ids.note_other_hits(keys, state)
        of_own = refunded
      end
    end
  end
  return of_own
end

-- What an approval that is not held takes of the first limit that has it; nil if none has.
function key_limits.taken_by(keys, state, id, list)
  for _, limit in ipairs(all_of(state, list)) do
    local taken = not limit.has_no_ids and limit:taken_by(keys, state, id)
    if taken then
      return taken
    end
  end
end

-- What the approvals take of all limits together.
function key_limits.used_of_all(state)
  local sum = state.groups and state.groups:used() or 0
  for _, limit in ipairs(state.limits) do
    sum = sum + limit:exact_used()
  end
  return sum
end

return key_limits
