-- The state of an instance, a hash; docs/redis.md says what its fields mean. A check costs what it reads and writes, so
-- fields that most keys do not need are absent:
--   start, limits, approved, turn, born   always
--   denied                                from the first denial on
--   changed                               since other rules came into force (lib/in-force)
--   released                              since an approval was released or corrected downwards (lib/given-back)
--   own                                   in a key whose own limit is a sliding window or a token bucket
--   more                                  with the fields of MORE, since somebody has waited or the key was lost,
--                                         while `expires` does not follow from the window, and while an approval has
--                                         more than one hit or is held, in a pause, while a vendor's report is in
--                                         force or a request has set the next window's length, while requests with ids
--                                         of their callers are remembered, while a check has said who holds its
--                                         approval, while a waiter has a lane or a group, and in a key with further
--                                         limits or a calendar. A field that says nothing is 0

local digits = require 'lib/digits'
local held = require 'limits/held'
local key_limits = require 'limits/key-limits'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local state_values = require 'lib/state-values'
local window = require 'limits/window'

local stored = {}

local FIRST_GENERATION = 1

-- The optional fields, as of docs/redis.md. Those that limits need to read their values come before `own` and `further`.
local MORE = {
  'expires', 'ticket', 'hold_until', 'unsorted', 'serving', 'served', 'blocked', 'hits', 'holds', 'lane_holds', 'paused_until',
  'next_window', 'own', 'further', 'hold_seen', 'hold_again', 'set_at', 'wake', 'named',
  'unclaimed', 'goes_on', 'lists', 'virtual_time',
}
-- The names in the state of the fields that have others. A hold is an approval that is held, there as everywhere.
local NAMES = { hold_until = 'recovery_until', hold_seen = 'recovery_seen', hold_again = 'recovery_again' }
-- A key whose other fields of MORE say nothing needs none of these either.
local SAYS_NOTHING_ALONE = { holds = true, hold_seen = true, hold_again = true, set_at = true }
-- What a state without these fields has in their place.
local NO_MORE = {
  __index = {
    stored_expires = 0, ticket = 0, recovery_until = 0, unsorted = 0, serving = 0, served = 0, hits = 0,
    held = 0, held_ids = 0, first_lapse = 0, last_lapse = 0, max_holds = 0, paused_until = 0,
    next_window = 0, recovery_seen = 0, recovery_again = 0, set_at = 0, wake = 0, named = 0,
    unclaimed = 0, lapsed_unclaimed = 0, unclaimed_held = 0, goes_on = 0, virtual_time = 0,
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
  return at
end

-- The `expires` to store: 0 if it follows from the windows, as after each check.
function stored.expires_to_store(state)
  return state.expires == stored.idle_time(state) and 0 or state.expires
end

-- The field `holds` (lib/holds): `<hits held>:<how many holds>:<first lapse>:<last lapse>:<most holds>`.
local function read_holds(state, text)
  local hits, held_ids, first_lapse, last_lapse, max_holds = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  if hits then
    state.held, state.held_ids, state.first_lapse = tonumber(hits), tonumber(held_ids), tonumber(first_lapse)
    state.last_lapse, state.max_holds = tonumber(last_lapse), tonumber(max_holds)
  end
end

local function format_holds(state)
  if not stored.has_holds(state) and state.max_holds == 0 then
    return 0
  end
  return string.format(
    '%.0f:%.0f:%.0f:%.0f:%.0f', state.held, state.held_ids, state.first_lapse, state.last_lapse, state.max_holds
  )
end

-- The field `unclaimed` (lib/unclaimed-approvals): `<how many take no hold>:<how many have lapsed>:<how many take a hold>`.
local function read_unclaimed(state, text)
  -- Earlier versions do not count those that take a hold.
  local unclaimed, lapsed, with_hold = string.match(text, '^(%d+):(%d+):?(%d*)$')
  state.unclaimed, state.lapsed_unclaimed, state.unclaimed_held = tonumber(unclaimed), tonumber(lapsed), tonumber(with_hold) or 0
end

local function format_unclaimed(state)
  if state.unclaimed + state.lapsed_unclaimed + state.unclaimed_held == 0 then
    return 0
  end
  return string.format('%.0f:%.0f:%.0f', state.unclaimed, state.lapsed_unclaimed, state.unclaimed_held)
end

-- The version before sets `blocked` where this one sets `serving`: somebody waits, and the limits have room.
local function read_blocked(state)
  state.serving = 1
end

local function format_blocked()
  return 0
end

-- How the fields of MORE are read and written that are more than a number in the state.
local READ = {
  holds = read_holds, own = key_limits.read_own, further = key_limits.read_further, blocked = read_blocked,
  unclaimed = read_unclaimed, lists = lists.read, lane_holds = held.read_lanes,
}
local WRITE = {
  expires = stored.expires_to_store, holds = format_holds, own = key_limits.format_own,
  further = key_limits.format_further, blocked = format_blocked, unclaimed = format_unclaimed, lists = lists.format,
  lane_holds = held.format_lanes,
}

local function read_more(state_key, state)
  state.has_more, state.stored_more = true, {}
  local texts = redis.call('HMGET', state_key, unpack(MORE))
  for i = 1, #MORE do
    local text = texts[i]
    -- A field that is 0 says nothing. Earlier versions do not write all of them.
    if text and text ~= '0' then
      local field = MORE[i]
      local read = READ[field]
      local value = read and text or tonumber(text)
      state.stored_more[i] = value
      if read then
        read(state, text)
      else
        state[NAMES[field] or field] = value
      end
    end
  end
  state.stored_expires = state.expires or 0
end

-- Writes what counts of limits that store more than a number.
local function write_counted(state_key, state)
  local own = state.own
  if own.algorithm ~= 'fixed_window' then
    redis.call('HSET', state_key, 'approved', digits(own.used), 'own', key_limits.format_own(state))
  end
  if #state.limits > 1 then
    redis.call('HSET', state_key, 'further', key_limits.format_further(state))
  end
end

-- Whether a field says nothing that the key needs the others for. A sliding window or a token bucket always has its `own`.
local function is_stored_alone(state, field)
  return SAYS_NOTHING_ALONE[field] or (field == 'own' and not state.own.has_boundary)
end

-- Writes the fields that have changed, or all of them if none was stored.
local function write_more(state_key, state)
  local before = state.stored_more
  local values, says_something = { 'more', 1 }, stored.has_holds(state)
  for i = 1, #MORE do
    local field = MORE[i]
    local write = WRITE[field]
    local value = write and write(state) or state[NAMES[field] or field]
    if not before or value ~= (before[i] or 0) then
      values[#values + 1], values[#values + 2] = field, value
    end
    says_something = says_something or (value ~= 0 and not is_stored_alone(state, field))
  end
  if says_something then
    redis.call('HSET', state_key, unpack(values))
    return
  end
  if not state.is_new then
    redis.call('HDEL', state_key, 'more', unpack(MORE))
  end
  write_counted(state_key, state)
end

-- A state with the limits of parsed rules, whose windows begin at `start`.
local function state_with(rules, start)
  local state = setmetatable({
    queue_max = rules.queue_max,
    window_is_set = rules.window_is_set,
    max_is_set = rules.max_is_set,
    queue_max_is_set = rules.queue_max_is_set,
    limits_text = rules.text,
    stored_used = 0, denied = 0, stored_denied = 0,
  }, NO_MORE)
  key_limits.begin(state, rules, start)
  return state
end

-- The state with these values, or nil if there is none.
function stored.of_values(state_key, values)
  if not values[2] then
    return nil
  end
  local state = state_with(limits_text.parse(values[2]), tonumber(values[1]))
  local used, denied = tonumber(values[3]), tonumber(values[5] or 0)
  state.own.used, state.stored_used, state.denied, state.stored_denied = used, used, denied, denied
  state.generation = tonumber(values[4])
  if values[6] then
    read_more(state_key, state)
  elseif not state.own.has_boundary then
    local text = values[7]
    if text == nil then
      text = redis.call('HMGET', state_key, 'own')[1]
    end
    if text then
      key_limits.read_own(state, text)
    end
  end
  state.expires = state.stored_expires > 0 and state.stored_expires or stored.idle_time(state)
  return state
end

function stored.read(state_key)
  return stored.of_values(state_key, state_values.read_all(state_key))
end

-- The state of a new key. `start`: of its windows. `idle`: the state of the instance before, if it is known. `rules`:
-- its limits.
function stored.new(call, start, idle, rules)
  local state = state_with(rules, start)
  state.is_new, state.rolled = true, true
  state.has_more = state.own.algorithm ~= 'fixed_window' or nil
  state.changed = state.has_more
  key_limits.take_calendars(state, call)
  state.generation, state.born = idle and idle.generation or FIRST_GENERATION, idle and idle.born or call.now_ms
  key_limits.move(state, call.now_us)
  state.expires = stored.idle_time(state)
  return state
end

-- When Redis got the key, in ms since 1970. Few calls need it, so it is read only for them.
function stored.born_at(keys, state)
  state.born = state.born or tonumber(redis.call('HMGET', keys.state, 'born')[1])
  return state.born
end

-- Removes a name that may be left from a state that Redis has lost. If there is none, an UNLINK would let a new key
-- into a full memory (lib/full-memory).
function stored.remove_leftover(name)
  if redis.call('EXISTS', name) == 1 then
    redis.call('UNLINK', name)
  end
end

-- `state.changed`: more than the counters, the window and the limits changed.
function stored.write(keys, state)
  local name, own = keys.state, state.own
  if state.is_new then
    redis.call(
      'HSET', name, 'start', digits(own.start), 'limits', limits_text.format(state),
      'approved', digits(own.used), 'turn', digits(state.generation), 'born', digits(state.born)
    )
  elseif state.rolled or state.changed then
    redis.call('HSET', name, 'start', digits(own.start), 'approved', digits(own.used), 'turn', digits(state.generation))
  elseif own.used ~= state.stored_used and own.has_boundary then
    redis.call('HSET', name, 'approved', digits(own.used))
  end
  if state.denied ~= state.stored_denied then
    redis.call('HSET', name, 'denied', digits(state.denied))
  end
  if state.limits_changed and not state.is_new then
    redis.call('HSET', name, 'limits', limits_text.format(state))
  end
  if state.released_at then
    redis.call('HSET', name, 'released', digits(state.released_at))
  end
  if state.limits_changed_at then
    redis.call('HSET', name, 'changed', digits(state.limits_changed_at))
  end
  if state.has_more and state.changed then
    write_more(name, state)
  elseif state.changed or state.counted or state.further_changed then
    write_counted(name, state)
  end
end

return stored
