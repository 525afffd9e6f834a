-- The state of an instance, a hash; docs/redis.md says what its fields mean. A check costs what it reads and writes, so
-- fields that most keys do not need are absent:
--   start, limits, approved, turn, born   always
--   denied                                from the first denial on
--   changed                               since other rules came into force (lib/in-force)
--   released                              since an approval was released or corrected downwards (lib/requests)
--   more                                  with the fields of MORE, since somebody has waited or the key was lost,
--                                         while `expires` does not follow from the window, and while an approval has
--                                         more than one hit or is held, in a pause, while a request has set the
--                                         next window's length, and in a key with further limits (lib/further). A
--                                         field that says nothing is 0

local digits = require 'lib/digits'
local further_fields = require 'lib/further-fields'
local limits_text = require 'lib/limits-text'
local state_values = require 'lib/state-values'
local window = require 'lib/window'

local stored = {}

local FIRST_TURN = 1

-- The optional fields, as of docs/redis.md.
local MORE = {
  'expires', 'ticket', 'hold_until', 'unsorted', 'serving', 'served', 'blocked', 'hits', 'holds', 'paused_until',
  'next_window', 'further', 'hold_seen', 'hold_again', 'set_at', 'wake',
}
-- A key whose other fields of MORE say nothing needs none of these either.
local SAYS_NOTHING_ALONE = { holds = true, hold_seen = true, hold_again = true, set_at = true }
-- What a state without these fields has in their place.
local NO_MORE = {
  __index = {
    stored_expires = 0, ticket = 0, hold_until = 0, unsorted = 0, serving = 0, served = 0, blocked = 0, hits = 0,
    held = 0, held_ids = 0, lapses = 0, held_until = 0, max_holds = 0, orders_holds = false, paused_until = 0,
    next_window = 0, hold_seen = 0, hold_again = 0, set_at = 0, wake = 0,
  },
}

function stored.has_holds(state)
  return state.lapses > 0
end

-- When a limit has more room, in ms since 1970: when its window ends or a hold lapses. While held approvals take all of the
-- maximum, the window's end makes no room.
function stored.more_room_at(state, window_end, held, max)
  if not stored.has_holds(state) then
    return window_end
  end
  return held < max and math.min(window_end, state.lapses) or state.lapses
end

-- When the key is removed if nobody checks it again: not before the last of its windows ends.
function stored.idle_time(state)
  local at = window.idle_at(state.start, state.window)
  for _, limit in ipairs(state.further or {}) do
    at = math.max(at, limit.start + limit.window)
  end
  return at
end

-- The `expires` to store: 0 if it follows from the windows, as after each check.
function stored.expires_to_store(state)
  return state.expires == stored.idle_time(state) and 0 or state.expires
end

-- The field `holds` (lib/holds): `<hits held>:<how many holds>:<first lapse>:<last lapse>:<most holds>`.
local function read_holds(state, text)
  local held, held_ids, lapses, held_until, max_holds = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  if held then
    state.held, state.held_ids, state.lapses = tonumber(held), tonumber(held_ids), tonumber(lapses)
    state.held_until, state.max_holds = tonumber(held_until), tonumber(max_holds)
  end
end

local function format_holds(state)
  if not stored.has_holds(state) and state.max_holds == 0 then
    return 0
  end
  return string.format(
    '%.0f:%.0f:%.0f:%.0f:%.0f', state.held, state.held_ids, state.lapses, state.held_until, state.max_holds
  )
end

-- How the fields of MORE are read and written that are more than a number of the same name in the state.
local READ = { holds = read_holds, further = further_fields.read }
local WRITE = { expires = stored.expires_to_store, holds = format_holds, further = further_fields.format }

local function read_more(state_key, state)
  state.has_more = true
  local texts = redis.call('HMGET', state_key, unpack(MORE))
  for i = 1, #MORE do
    local text = texts[i]
    -- A field that is 0 says nothing. Earlier versions do not write all of them.
    if text and text ~= '0' then
      local name = MORE[i]
      if READ[name] then
        READ[name](state, text)
      else
        state[name] = tonumber(text)
      end
    end
  end
  state.stored_expires = state.expires or 0
end

local function write_more(state_key, state)
  local values, says_something = { 'more', state.orders_holds and 2 or 1 }, stored.has_holds(state)
  for i = 1, #MORE do
    local name = MORE[i]
    local write = WRITE[name]
    local value = write and write(state) or state[name]
    values[2 * i + 1], values[2 * i + 2] = name, value
    says_something = says_something or (value ~= 0 and not SAYS_NOTHING_ALONE[name])
  end
  if says_something then
    redis.call('HSET', state_key, unpack(values))
  else
    redis.call('HDEL', state_key, 'more', unpack(MORE))
  end
end

-- The state with these values, or nil if there is none.
function stored.of_values(state_key, values)
  if not values[2] then
    return nil
  end
  local limits = limits_text.parse(values[2])
  local approved, denied = tonumber(values[3]), tonumber(values[5] or 0)
  local state = setmetatable({
    start = tonumber(values[1]),
    window = limits.window,
    max = limits.max,
    queue_max = limits.queue_max,
    window_is_set = limits.window_is_set,
    max_is_set = limits.max_is_set,
    queue_max_is_set = limits.queue_max_is_set,
    limits = limits.text,
    approved = approved,
    stored_approved = approved,
    denied = denied,
    stored_denied = denied,
    turn = tonumber(values[4]),
  }, NO_MORE)
  further_fields.set(state, limits, state.start)
  if values[6] then
    state.orders_holds = values[6] == '2'
    read_more(state_key, state)
  end
  state.expires = state.stored_expires > 0 and state.stored_expires or stored.idle_time(state)
  return state
end

function stored.read(state_key)
  return stored.of_values(state_key, state_values.read(state_key))
end

-- The state of a new key. `start`: of its window. `idle`: the state of the instance before, if it is known.
function stored.new(call, start, idle, limits)
  local state = setmetatable({
    is_new = true,
    rolled = true,
    start = start,
    window = limits.window,
    max = limits.max,
    queue_max = limits.queue_max,
    window_is_set = limits.window_is_set,
    max_is_set = limits.max_is_set,
    queue_max_is_set = limits.queue_max_is_set,
    limits = limits.text,
    further_text = '',
    approved = 0,
    stored_approved = 0,
    denied = 0,
    stored_denied = 0,
    turn = idle and idle.turn or FIRST_TURN,
    born = idle and idle.born or call.now_ms,
  }, NO_MORE)
  state.expires = window.idle_at(state.start, state.window)
  return state
end

-- When Redis got the key, in ms since 1970. Few calls need it, so it is read only for them.
function stored.born_at(keys, state)
  state.born = state.born or tonumber(redis.call('HMGET', keys.state, 'born')[1])
  return state.born
end

-- A field of MORE has changed.
function stored.more_changed(state)
  state.has_more, state.changed = true, true
end

-- Sets a field of MORE.
function stored.set_more(state, field, value)
  state[field] = value
  stored.more_changed(state)
end

-- Removes a name that may be left from a state that Redis has lost. If there is none, an UNLINK would let a new key into a
-- full memory (`instance.decide_in_full_memory`).
function stored.remove_leftover(name)
  if redis.call('EXISTS', name) == 1 then
    redis.call('UNLINK', name)
  end
end

-- `state.changed`: more than the counters, the window and the limits changed.
function stored.write(keys, state)
  local name = keys.state
  if state.is_new then
    redis.call(
      'HSET', name, 'start', digits(state.start), 'limits', limits_text.format(state),
      'approved', digits(state.approved), 'turn', digits(state.turn), 'born', digits(state.born)
    )
  elseif state.rolled or state.changed then
    redis.call(
      'HSET', name, 'start', digits(state.start), 'approved', digits(state.approved), 'turn', digits(state.turn)
    )
  elseif state.approved ~= state.stored_approved then
    redis.call('HSET', name, 'approved', digits(state.approved))
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
  elseif state.further_written then
    redis.call('HSET', name, 'further', further_fields.format(state))
  end
end

return stored
