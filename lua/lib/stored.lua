-- The state of an instance, a hash; docs/redis-names.md says what its fields mean. A check costs what it reads and writes, so
-- fields that most keys do not need are absent:
--   start, limits, approved, gen, born    always
--   denied                                from the first denial on
--   changed                               since other rules came into force (lib/in-force)
--   released                              since an approval was released or corrected downwards (lib/given-back)
--   own                                   in a key whose own limit has no boundary: what its kind stores
--   extra, queue, holds                   while anything else is to be said: JSON with the names of the state in the scripts, without
--                                         what says nothing. `extra` is there if any of them is. They are three, since Redis keeps
--                                         a hash in half the memory as long as no value has more than 64 bytes

local digits = require 'lib/digits'
local json = require 'lib/json'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local window = require 'limits/window'

local stored = {}

local FIRST_GENERATION = 1

-- What each of them says, in this order.
local QUEUE = { 'ticket', 'wake', 'served', 'serving', 'unsorted', 'lists', 'virtual_time' }
-- And `last_lapse`, if it is not `first_lapse`.
local HOLDS = { 'held', 'held_ids', 'first_lapse', 'lane_holds', 'unclaimed', 'unclaimed_held', 'lapsed_unclaimed' }
-- Before these, `extra` has `expires`, which follows from the windows in most keys, what windows and calendars store of the own limit,
-- and the further limits.
local EXTRA = { 'hits', 'ends', 'paused_until', 'next_window', 'goes_on', 'recovery_until', 'groups_until', 'groups_number' }
-- In `extra` as well. A key of which nothing else is to be said needs none of these either.
local SAYS_NOTHING_ALONE = { 'max_holds', 'recovery_seen', 'recovery_again', 'set_at' }
-- What a state without these fields has in their place.
local NO_EXTRA = {
  __index = {
    stored_expires = 0, ticket = 0, recovery_until = 0, unsorted = 0, serving = 0, served = 0, hits = 0,
    held = 0, held_ids = 0, first_lapse = 0, last_lapse = 0, max_holds = 0, paused_until = 0,
    next_window = 0, recovery_seen = 0, recovery_again = 0, set_at = 0, wake = 0, ends = 0,
    unclaimed = 0, lapsed_unclaimed = 0, unclaimed_held = 0, goes_on = 0, virtual_time = 0, groups_until = 0, groups_number = 0,
    lane_holds = {},
  },
}

function stored.has_holds(state)
  return state.first_lapse > 0
end

-- When the key is removed if nobody checks it again: not before the last of its windows ends.
function stored.idle_time(state)
  local at = window.idle_after(state.own:ends(), state.own.window)
  for i = 2, #state.limits do
    at = math.max(at, state.limits[i]:counts_until())
  end
  return state.groups_until > at and state.groups_until or at
end

local function take(state, fields)
  for name, value in pairs(fields) do
    state[name] = value
  end
end

-- Reads what limits need to read what they have stored, and then that. Each text is false if there is none.
local function read_optional(state, own, extra, queue, holds)
  local fields = extra and cjson.decode(extra) or {}
  local of_window, further = fields.own, fields.further
  fields.own, fields.further = nil, nil
  if queue then
    take(state, cjson.decode(queue))
  end
  if holds then
    take(state, cjson.decode(holds))
    state.last_lapse = math.max(state.first_lapse, state.last_lapse)
  end
  take(state, fields)
  if own or of_window then
    state.own:read(state, of_window or cjson.decode(own))
  end
  if further then
    for i = 2, #state.limits do
      key_limits.read_counts(state, state.limits[i], further)
    end
  end
  state.stored_expires = fields.expires or 0
end

-- The texts of `extra`, `queue` and `holds`, each nil if it says nothing.
local function format_optional(state)
  local own, queue, holds = state.own, '', ''
  -- Without a ticket nobody has waited. After the clock has gone back, a new key knows only when its waiters were served.
  if state.ticket > 0 or state.served > 0 then
    queue = json.fields(state, QUEUE)
  end
  if stored.has_holds(state) or state.lapsed_unclaimed > 0 then
    holds = json.fields(state, HOLDS)
    holds = json.add(holds, 'last_lapse', state.last_lapse ~= state.first_lapse and digits(state.last_lapse))
  end
  -- After each check it follows from the windows.
  local extra = json.add('', 'expires', state.expires ~= stored.idle_time(state) and digits(state.expires))
  extra = json.add(extra, 'own', own.has_boundary and json.object(own:format()))
  extra = json.add(extra, 'further', #state.limits > 1 and key_limits.format_counts(state.limits, 2))
  extra = json.join(extra, json.fields(state, EXTRA))
  if extra ~= '' or queue ~= '' or holds ~= '' then
    extra = json.join(extra, json.fields(state, SAYS_NOTHING_ALONE))
    return json.object(extra), queue ~= '' and json.object(queue) or nil, holds ~= '' and json.object(holds) or nil
  end
end

-- A state with the limits of parsed rules, whose windows begin at `start`. The fields that many calls add have room from the first:
-- a table that grows is built again each time.
local function state_with(rules, start)
  local state = setmetatable({
    queue_max = rules.queue_max,
    window_is_set = rules.window_is_set,
    max_is_set = rules.max_is_set,
    queue_max_is_set = rules.queue_max_is_set,
    limits_text = rules.text,
    stored_used = 0, denied = 0,
    limits = nil, own = nil, generation = nil, expires = nil, stored_expires = nil, stored_values = nil, kept_until = nil, tally = nil,
    known_room_at = nil, known_lapse = nil, ticket = nil, wake = nil, serving = nil, served = nil, set_at = nil, made_room = nil,
    needs_expiry = nil,
  }, NO_EXTRA)
  key_limits.begin(state, rules, start)
  return state
end

-- The state with these values, or nil if there is none.
function stored.of_values(state_key, values)
  if not values[2] then
    return nil
  end
  local state = state_with(limits_text.parse_stored(values[2]), tonumber(values[1]))
  local used, denied = tonumber(values[3]), tonumber(values[5] or 0)
  state.own.used, state.stored_used, state.denied = used, used, denied
  state.generation = tonumber(values[6])
  if not state.own.has_boundary and values[7] == nil then
    values[7] = redis.call('HMGET', state_key, 'own')[1]
  end
  if values[4] then
    values[8], values[9] = unpack(redis.call('HMGET', state_key, 'queue', 'holds'))
  end
  state.stored_values = values
  if values[4] or values[7] then
    read_optional(state, values[7], values[4], values[8], values[9])
  end
  state.expires = state.stored_expires > 0 and state.stored_expires or stored.idle_time(state)
  return state
end

function stored.read(state_key)
  return stored.of_values(state_key, key_names.read_all_values(state_key))
end

-- The state of a new key, whose windows begin now. `idle`: the state of the instance before, if it is known. `rules`: its
-- limits.
function stored.new(call, idle, rules)
  local state = state_with(rules, call.now_ms)
  state.is_new, state.rolled = true, true
  key_limits.take_calendars(state, call)
  state.generation, state.born = idle and idle.generation or FIRST_GENERATION, idle and idle.born or call.now_ms
  key_limits.ask_all(state, 'move', call.now_us, state)
  state.expires = stored.idle_time(state)
  return state
end

-- When Redis got the key, in ms since 1970. Few calls need it, so it is read only for them.
function stored.born_at(keys, state)
  state.born = state.born or tonumber(redis.call('HMGET', keys.state, 'born')[1])
  return state.born
end

-- The number of the last wake of a key in which somebody waits; nil without such a key.
function stored.last_wake(state_key)
  local limits, queue = unpack(redis.call('HMGET', state_key, 'limits', 'queue'))
  if limits and queue then
    limits_text.parse_stored(limits)
    return cjson.decode(queue).wake or 0
  end
end

-- Adds a field to `values` if it differs from what is stored, `before`. `number`: nil or false if it is not to be written.
local function add(values, before, name, number)
  if number and number ~= tonumber(before) then
    values[#values + 1], values[#values + 2] = name, digits(number)
  end
end

-- The same for a text. Returns the fields that say nothing any more, `gone`, which is nil if there is none yet.
local function replace(values, gone, before, name, text)
  if text and text ~= before then
    values[#values + 1], values[#values + 2] = name, text
  elseif before and not text then
    gone = gone or {}
    gone[#gone + 1] = name
  end
  return gone
end

-- What each new state has, in a table that need not grow.
local function values_of_new(state)
  return {
    'start', digits(state.own.start), 'limits', limits_text.to_store(state), 'approved', digits(state.own.used),
    'gen', digits(state.generation), 'born', digits(state.born),
  }
end

local NOTHING_STORED = {}

-- Writes the fields that differ from what is stored.
function stored.write(keys, state)
  local own, values = state.own, state.is_new and values_of_new(state) or {}
  local start, _, approved, stored_extra, denied, gen, stored_own, stored_queue, stored_holds =
    unpack(state.stored_values or NOTHING_STORED, 1, 9)
  local own_text = not own.has_boundary and json.object(own:format())
  local extra, queue, holds = format_optional(state)
  if not state.is_new then
    add(values, start, 'start', own.start)
    replace(values, nil, nil, 'limits', state.limits_changed and limits_text.to_store(state))
    -- Without boundaries it changes with time alone: it is written with what it follows from.
    add(values, approved, 'approved', (own.has_boundary or own_text ~= stored_own) and own.used)
    add(values, gen, 'gen', state.generation)
  end
  add(values, denied, 'denied', (state.denied > 0 or denied) and state.denied)
  add(values, nil, 'released', state.released_at)
  add(values, nil, 'changed', state.limits_changed_at)
  local gone = replace(values, nil, stored_own, 'own', own_text)
  gone = replace(values, gone, stored_extra, 'extra', extra)
  gone = replace(values, gone, stored_queue, 'queue', queue)
  gone = replace(values, gone, stored_holds, 'holds', holds)
  if #values > 0 then
    redis.call('HSET', keys.state, unpack(values))
  end
  if gone then
    redis.call('HDEL', keys.state, unpack(gone))
  end
end

-- If its memory is full, Redis refuses a script at its first write that takes memory. After a write that takes none,
-- all later writes pass. So existing keys are decided, and only new keys fail. A script has to decide new keys
-- first.
--
-- A call of checks does that only after Redis has refused one (`may_be_full`), and knows then whether approvals may
-- still take memory (`is_over_full`). Before that, its first write has to take memory, so that Redis refuses it. What
-- has ended would be removed first. So something is written as it is before.

local function ends_something(state, now_ms)
  if stored.has_holds(state) and now_ms >= state.first_lapse then
    return true
  end
  for _, limit in ipairs(state.limits) do
    if not limit:is_current(now_ms) then
      return true
    end
  end
  return false
end

-- Makes the first write of a call. `state`: absent if nothing is removed first.
function stored.write_first(state_key, call, state)
  if call.may_be_full then
    redis.call('HDEL', state_key, '')
    call.may_be_full = false
  elseif state and ends_something(state, call.now_ms) then
    redis.call('HSET', state_key, 'gen', digits(state.generation))
  end
end

return stored
