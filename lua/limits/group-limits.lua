-- The limits of a key that each group (queue/lists) has to itself, and what pauses groups. A limit of a group is a limit as any
-- other, with `group`, and its ids have names of their own. A group is idle if nothing counts in its limits or is held, and it is
-- neither paused nor stopped: then nothing is stored of it, and its windows begin again with its next check.
--
-- Names in Redis, which are built here:
--   groups       a hash: the id of a group -> JSON with what is stored of it, as `format` has it
--   groups:idle  a sorted set: the ids of all of them by when they will be idle, in ms since 1970, if nothing changes before; infinite
--                for a group that is stopped or holds approvals
--
-- `state.groups` is there in a key with such limits, or with a paused group, and has what the call has read:
--   by_id        the groups, by their ids. A group has
--     limits         in the order of the rules
--     held, held_ids the hits and the number of its held approvals
--     paused_until   when its pause ends, in ms since 1970; 0 without one
--     tag            while it is stopped: its order key (queue/lists)
--     used_before, held_before, held_ids_before, paused_before, tag_before
--                    the same, and what its limits took, when the call first looked at it
--     is_changed     whether the call has changed what counts. A call that changes nothing of a group leaves what is stored of it, so
--                    that whether anybody has looked changes nothing
-- The state's field `groups_until` is when the last of all groups will be idle, in ms since 1970; `groups_number` is another number
-- whenever the key gets such limits, or has none any more: what was stored with an earlier one counts no longer, except for
-- pauses and tags.

local digits = require 'lib/digits'
local holds = require 'lib/holds'
local json = require 'lib/json'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local kinds = require 'limits/kinds'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local reads = require 'lib/reads'
local requests = require 'lib/requests'

local group_limits = {}
group_limits.__index = group_limits

-- For each new group, this many idle ones are forgotten.
local MOST_FORGOTTEN = 10
local MOST_LOOKED_AT = 200
local FIELDS = { 'number', 'held', 'held_ids', 'paused_until', 'tag', 'idle_at' }

local function hash_name(keys)
  return keys.state .. ':groups'
end

local function idle_name(keys)
  return keys.state .. ':groups:idle'
end

-- To be called once the limits of the key are those of the call. While groups wait, some may be stopped, though nothing stops them
-- any more.
function group_limits.begin(keys, state, call)
  local until_ms = state.groups_until
  if #state.of_groups == 0 and until_ms == 0 then
    return
  end
  local may_have_stopped = until_ms > 0 and state.lists ~= nil
  if #state.of_groups > 0 or until_ms > call.now_ms or may_have_stopped then
    state.groups = state.groups or setmetatable({ keys = keys, state = state, call = call, by_id = {} }, group_limits)
  end
end

-- A key without such limits pauses a group.
function group_limits.require(keys, state, call)
  state.groups_until = math.max(state.groups_until, call.now_ms + 1)
  group_limits.begin(keys, state, call)
  return state.groups
end

local function begin_limit(self, group, declared)
  local limit = kinds.begin(declared, self.call.now_ms)
  limit.group, limit.max = group, declared.maxima[group.id] or declared.max
  if limit.window_varies then
    limit.windows = self.call.rules and self.call.rules.calendars[limit.parameter] or limit.windows
  end
  return limit
end

local function begin_limits(self, group, declared)
  local limits = {}
  for i, each in ipairs(declared) do
    limits[i] = begin_limit(self, group, each)
    limits[i]:move(self.call.now_us)
    key_limits.begin_without_ids(self.keys, limits[i], limits[i])
  end
  return limits
end

-- The sum of what its limits take.
local function used_of(group)
  local sum = 0
  for _, limit in ipairs(group.limits) do
    sum = sum + limit:exact_used()
  end
  return sum
end

-- Holds count for a group that has limits.
local function is_held_or_stopped(group)
  return (#group.limits > 0 and group.held_ids > 0) or group.tag
end

local function is_idle(group)
  if is_held_or_stopped(group) or group.paused_until > 0 then
    return false
  end
  for _, limit in ipairs(group.limits) do
    if not limit:counts_nothing() then
      return false
    end
  end
  return true
end

-- Moves a limit to the time of the call.
local function move(self, limit)
  local keys, state, call = self.keys, self.state, self.call
  limit:begin_by(call.now_ms, state.set_at)
  limit:move(call.now_us, state)
  if limit:roll(state, call.now_ms, limit.window) and limit.has_boundary then
    key_limits.begin_without_ids(keys, limit, limit)
  end
  if not keys.is_read_only then
    limit:drop_ended_ids(keys)
  end
end

-- Reads a group as of the call.
local function read(self, id)
  local number = self.state.groups_number
  local text = number >= 0 and redis.call('HMGET', hash_name(self.keys), id)[1]
  local stored = text and cjson.decode(text) or {}
  local is_known = text and (stored.number or 0) == number
  -- What counted with an earlier number is due to be forgotten.
  local counts = is_known and stored or { idle_at = 0 }
  local group = {
    id = id, text = text, held = counts.held or 0, held_ids = counts.held_ids or 0, paused_until = stored.paused_until or 0,
    tag = stored.tag, idle_at = counts.idle_at, number = number, limits = {}, limits_text = counts.limits or self.state.groups_text,
  }
  group.counts_list = function(_, list)
    return list == id
  end
  if not is_known then
    group.limits = begin_limits(self, group, self.state.of_groups)
  else
    for i, declared in ipairs(limits_text.parse_groups(group.limits_text)) do
      local limit = begin_limit(self, group, declared)
      key_limits.read_counts(self.state, limit, stored.counts)
      move(self, limit)
      group.limits[i] = limit
    end
  end
  return group
end

-- The rules in force become those of a group.
local function take_rules(self, group)
  if group.limits_text == self.state.groups_text then
    return
  end
  group.limits = key_limits.change_limits(self.keys, self.state, self.call, group.limits, self.state.of_groups, function(declared)
    return begin_limit(self, group, declared)
  end)
  group.limits_text = self.state.groups_text
end

-- A group as of the call; nil for a list that is none.
function group_limits:of(id)
  if self.by_id[id] or string.sub(id, 1, 6) ~= 'group:' then
    return self.by_id[id]
  end
  local group = read(self, id)
  self.by_id[id] = group
  take_rules(self, group)
  if group.paused_until > 0 and self.call.now_ms >= group.paused_until then
    group.paused_until, group.has_room = 0, true
  end
  if group.text and is_idle(group) then
    group.limits = begin_limits(self, group, self.state.of_groups)
  end
  if self.is_serving then
    group_limits.ask(group, 'begin_serving')
  end
  group.used_before, group.held_before, group.held_ids_before = used_of(group), group.held, group.held_ids
  group.paused_before, group.tag_before = group.paused_until, group.tag
  return group
end

-- When the pause of a list ends, in ms since 1970; 0 if it has none.
function group_limits:paused_until(list)
  local group = self:of(list)
  return group and group.paused_until or 0
end

-- Holds have lapsed: groups that are idle by that begin again.
function group_limits:begin_idle()
  for _, group in pairs(self.by_id) do
    if is_idle(group) then
      group.limits = begin_limits(self, group, self.state.of_groups)
    end
  end
end

function group_limits.ask(group, question)
  for _, limit in ipairs(group.limits) do
    limit[question](limit)
  end
end

-- Asks all groups that the call has looked at, and those that it will look at.
function group_limits:serve(is_serving)
  self.is_serving = is_serving
  for _, group in pairs(self.by_id) do
    local used = used_of(group)
    group_limits.ask(group, is_serving and 'begin_serving' or 'end_serving')
    -- A bucket that is served late has drained meanwhile.
    group.used_before = group.used_before + used_of(group) - used
  end
end

-- Other rules are in force.
function group_limits.take_rules(keys, state, call)
  if state.groups and state.groups_are_new then
    -- They are read again.
    state.groups.by_id = {}
  end
  group_limits.begin(keys, state, call)
  if not state.groups then
    return
  end
  for _, group in pairs(state.groups.by_id) do
    take_rules(state.groups, group)
  end
  if state.groups_are_new and #state.of_groups > 0 then
    state.groups:count_held()
  end
  lists.bring_all_back(keys)
  if state.groups_are_new and not keys.is_read_only then
    -- All may be idle.
    lists.make_all_due(idle_name(keys))
  end
end

-- By how much more the groups take than before the call.
function group_limits:used()
  local sum = 0
  for _, group in pairs(self.by_id) do
    sum = sum + used_of(group) - group.used_before
  end
  return sum
end

-- Whether there may be more room in a group than before the call.
local function may_have_room(group)
  return group.has_room or group.held < group.held_before or group.held_ids < group.held_ids_before
    or used_of(group) < group.used_before
end

-- The ids of the groups in which there may be more room than before the call. The caller brings them back.
function group_limits:take_changed()
  local ids = {}
  for id, group in pairs(self.by_id) do
    if may_have_room(group) then
      ids[#ids + 1], group.is_back = id, true
    end
  end
  return ids
end

-- What stops the head of a group, if only its own limits and its pause do: the name of the limit that has room last, or `paused`; nil if
-- nothing stops it. And when that may have ended by itself, in ms since 1970: math.huge if only a release, a lapse or a correction can
-- end it, each of which tells its group.
local function stop_of(state, group, hits)
  local time, reason = group.paused_until, group.paused_until > 0 and 'paused' or nil
  for _, limit in ipairs(group.limits) do
    if not limit:fits_into(limit:free(), hits) then
      local until_ms = limit:is_full_of_held(state) and math.huge or limit:room_at(state, hits)
      if until_ms >= time then
        time, reason = until_ms, limit.name
      end
    end
  end
  return reason, time
end

function group_limits.stopped_until(state, group, hits)
  local _, time = stop_of(state, group, hits)
  return time
end

-- Whether the call has changed anything of a group.
local function has_changed(group)
  return group.is_changed or group.has_room or group.paused_until ~= group.paused_before or group.tag ~= group.tag_before
end

-- Whether something of a group is stored after the call.
local function is_kept(self, group)
  if not is_idle(group) then
    return true
  end
  local is_due = group.idle_at and group.idle_at <= self.call.now_ms
  return group.text and not is_due and not has_changed(group)
end

-- Pauses a group as lib/pause does a key. Returns the ms until its pause ends.
function group_limits:pause(id, millis, can_shorten)
  local group, now_ms = self:of(id), self.call.now_ms
  local paused_until = millis > 0 and now_ms + millis or 0
  if can_shorten or paused_until > group.paused_until then
    group.has_room = group.has_room or paused_until < group.paused_until
    group.paused_until = paused_until
    self.state.set_at, self.state.made_room = now_ms, self.state.made_room or group.has_room
  end
  return math.max(0, group.paused_until - now_ms)
end

local function format(group)
  local fields = json.add('', 'limits', cjson.encode(group.limits_text))
  fields = json.add(fields, 'counts', key_limits.format_counts(group.limits, 1))
  return json.object(json.join(fields, json.fields(group, FIELDS)))
end

local function forget(self, group)
  redis.call('HDEL', hash_name(self.keys), group.id)
  redis.call('ZREM', idle_name(self.keys), group.id)
  group.text = nil
end

-- Until when anything counts in a group, or pauses it.
local function busy_until(group)
  local time = group.paused_until
  for _, limit in ipairs(group.limits) do
    if not limit:counts_nothing() then
      time = math.max(time, limit:counts_until())
    end
  end
  return time
end

-- Where it is among the groups by when they will be idle.
local function score_of(group)
  return group.idle_at and digits(group.idle_at) or '+inf'
end

local function write(self, group)
  if not is_kept(self, group) then
    if group.text then
      forget(self, group)
    end
    return
  elseif group.text and not has_changed(group) then
    return
  end
  local state, idle_at, score_before = self.state, busy_until(group), score_of(group)
  state.groups_until = math.max(state.groups_until, idle_at)
  if is_held_or_stopped(group) then
    idle_at = nil
  end
  group.idle_at = idle_at
  local text = format(group)
  if text == group.text then
    return
  end
  -- Somebody may have removed either name.
  local added = redis.call('HSET', hash_name(self.keys), group.id, text)
  if not group.text or score_of(group) ~= score_before then
    added = added + redis.call('ZADD', idle_name(self.keys), score_of(group), group.id)
  end
  state.needs_expiry = state.needs_expiry or added > 0
  group.text = text
end

-- Some groups whose time to be idle has come.
local function due_groups(self)
  local due = redis.call('ZRANGE', idle_name(self.keys), '-inf', digits(self.call.now_ms), 'BYSCORE', 'LIMIT', 0, MOST_FORGOTTEN)
  return reads.add(due, 1)
end

-- Forgets the groups that the call has made idle, and some whose time to be idle has come. Returns whether there were any of these.
local function forget_idle(self)
  local name, due = idle_name(self.keys), due_groups(self)
  for _, group in pairs(self.by_id) do
    if group.text and not is_kept(self, group) then
      forget(self, group)
    end
  end
  for _, id in ipairs(due) do
    local group = self:of(id)
    -- It may not be idle yet.
    group.is_changed = true
    write(self, group)
    if group.text then
      redis.call('ZADD', name, score_of(group), id)
    else
      redis.call('ZREM', name, id)
    end
  end
  return #due > 0
end

-- Counts what is held already, by the records of the requests. A call that only looks finds lapsed ones too.
function group_limits:count_held()
  if self.state.held_ids == 0 then
    return
  end
  local found, now_ms = requests.read_all(self.keys), self.call.now_ms
  for id, lapses in pairs(holds.lapses_of(self.keys, found, now_ms)) do
    local request = found[id]
    local group = lapses > now_ms and request.list and self:of(request.list.id)
    if group then
      local hits = request.took or request.hits
      group.held, group.held_ids, group.is_changed = group.held + hits, group.held_ids + 1, true
      for _, limit in ipairs(group.limits) do
        limit:hold(hits, 1)
      end
    end
  end
end

-- Subtracts what is held by now from what is held in truth, by group, so that all groups that hold anything are there.
function group_limits:subtract_held(by_group)
  for _, id in ipairs(reads.add(redis.call('ZRANGE', idle_name(self.keys), 0, -1), 1)) do
    local group, changed = self:of(id), by_group[id] or { hits = 0, ids = 0 }
    by_group[id] = { hits = changed.hits - group.held, ids = changed.ids - group.held_ids }
  end
end

-- Of how many groups something is stored after the call, as far as it has looked at them.
local function count_busy(self)
  local count = self.state.groups_number >= 0 and redis.call('HLEN', hash_name(self.keys)) or 0
  for _, group in pairs(self.by_id) do
    local will_be, is_stored = is_kept(self, group) and true or false, group.text and true or false
    if will_be ~= is_stored then
      count = count + (will_be and 1 or -1)
    end
  end
  return count
end

-- Whether the key has no room for a group that is idle, as far as the call says how many it may have.
function group_limits:is_full_for(id)
  local most = self.call.max_groups
  if not most or is_kept(self, self:of(id)) or count_busy(self) < most then
    return false
  elseif self.keys.is_read_only then
    for _, due in ipairs(due_groups(self)) do
      -- As in forget_idle: its time has come, whatever is stored with it.
      self:of(due).is_changed = true
    end
    return count_busy(self) >= most
  end
  while forget_idle(self) and count_busy(self) >= most do
  end
  return count_busy(self) >= most
end

-- Writes what the call has changed.
function group_limits:write()
  local is_new = false
  for id, group in pairs(self.by_id) do
    if group.tag and may_have_room(group) and not group.is_back then
      lists.bring_back_later(self.keys, id)
    end
    local had_text = group.text
    write(self, group)
    is_new = is_new or (group.text and not had_text)
  end
  if is_new then
    forget_idle(self)
  end
end

function group_limits.expire(keys, state, expire_at)
  if state.groups then
    redis.call('PEXPIREAT', hash_name(keys), expire_at)
    redis.call('PEXPIREAT', idle_name(keys), expire_at)
  end
end

-- The key is removed, or its counts are lost.
function group_limits.drop(keys, state)
  if #state.of_groups > 0 or state.groups_until > 0 then
    redis.call('UNLINK', hash_name(keys), idle_name(keys))
    state.groups_until = 0
  end
end

-- What may be left from a state that Redis has lost.
function group_limits.remove_leftovers(keys)
  key_names.remove_leftover(hash_name(keys))
  key_names.remove_leftover(idle_name(keys))
end

-- What is shown of the fullest groups, at most this number of them: of each its `name`, and of each limit what counts, `used`. The
-- MOST_LOOKED_AT groups are looked at that will be idle last.
function group_limits:fullest(most)
  local shown = {}
  for _, id in ipairs(redis.call('ZRANGE', idle_name(self.keys), -MOST_LOOKED_AT, -1)) do
    local group, used, fullness = self:of(id), {}, 0
    for i, limit in ipairs(group.limits) do
      used[i], fullness = limit.used, math.max(fullness, limit.used / math.max(1, limit:capacity()))
    end
    if not is_idle(group) then
      shown[#shown + 1] = { id = id, used = used, fullness = fullness }
    end
  end
  table.sort(shown, function(a, b)
    if a.fullness ~= b.fullness then
      return a.fullness > b.fullness
    end
    return a.id < b.id
  end)
  return { unpack(shown, 1, math.min(most, #shown)) }
end

-- What stops the head of a group alone, and for how many ms at least; -1 if that is not known. Nil if nothing does.
function group_limits:reason_of_stop(id, hits)
  local reason, time = stop_of(self.state, self:of(id), hits)
  return reason, reason and (time < math.huge and math.max(0, time - self.call.now_ms) or -1)
end

return group_limits
