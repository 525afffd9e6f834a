-- The state of an instance, a hash; docs/redis.md says what its fields mean. A check costs what it reads and writes, so
-- fields that most keys do not need are absent:
--   start, limits, approved, turn, born   always
--   denied                                from the first denial on
--   changed                               since other rules came into force (lib/rules)
--   released                              since an approval was released or corrected downwards (lib/requests)
--   more                                  with the fields of MORE, since somebody has waited or the key was lost,
--                                         while `expires` does not follow from the window, and while an approval has
--                                         more than one hit or is held, in a pause, while a request has set the
--                                         next window's length, and in a key with further limits (lib/further). A
--                                         field that says nothing is 0
--@include lib/digits
--@include lib/limits
--@include lib/state-values
--@include lib/window

local FIRST_TURN = 1

-- The functions of further limits, a table since Lua allows a script 200 local variables. lib/further has most of them.
local further = {}

local MORE = { 'expires', 'ticket', 'hold_until', 'unsorted', 'serving', 'served', 'blocked', 'hits', 'holds',
  'paused_until', 'next_window', 'further', 'hold_seen', 'hold_again', 'set_at' }
-- Their values in a key without them.
local NO_MORE = {
  __index = {
    stored_expires = 0, ticket = 0, hold_until = 0, unsorted = 0, serving = 0, served = 0, blocked = 0, hits = 0,
    held = 0, held_ids = 0, lapses = 0, held_until = 0, max_holds = 0, orders_holds = false, paused_until = 0, next_window = 0,
    hold_seen = 0, hold_again = 0, set_at = 0,
  },
}

-- The field `holds` (lib/holds): `<hits held>:<how many holds>:<first lapse>:<last lapse>:<most holds>`.
local function read_holds(state, text)
  local held, held_ids, lapses, held_until, max_holds = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  state.held, state.held_ids, state.lapses = tonumber(held), tonumber(held_ids), tonumber(lapses)
  state.held_until, state.max_holds = tonumber(held_until), tonumber(max_holds)
end

local function has_holds(state)
  return state.lapses > 0
end

-- When a limit has more room, in ms since 1970: when its window ends or a hold lapses. While held approvals take all of the
-- maximum, the window's end makes no room.
local function more_room_at(state, window_end, held, max)
  if not has_holds(state) then
    return window_end
  end
  return held < max and math.min(window_end, state.lapses) or state.lapses
end

local function format_holds(state)
  if not has_holds(state) and state.max_holds == 0 then
    return 0
  end
  return string.format(
    '%.0f:%.0f:%.0f:%.0f:%.0f', state.held, state.held_ids, state.lapses, state.held_until, state.max_holds
  )
end

-- Gives a state the further limits of a text (lib/limits), with windows that begin at `start` and have no approvals.
function further.set(state, limits, start)
  state.further_text, state.further = limits.further_text, nil
  if limits.further then
    state.further = {}
    for i, limit in ipairs(limits.further) do
      state.further[i] = {
        name = limit.name, window = limit.window, max = limit.max, counts = limit.counts, keeps = limit.keeps,
        start = start, taken = 0,
      }
    end
  end
end

-- The field `further` (lib/further).
function further.read(state, text)
  local starts, takens = {}, {}
  for name, start, taken in string.gmatch(text or '', '([^=,]+)=(%d+):(%d+)') do
    starts[name], takens[name] = tonumber(start), tonumber(taken)
  end
  for _, limit in ipairs(state.further) do
    limit.start = starts[limit.name] or limit.start
    limit.taken = takens[limit.name] or 0
  end
end

function further.format(state)
  if not state.further then
    return 0
  end
  local texts = {}
  for i, limit in ipairs(state.further) do
    texts[i] = string.format('%s=%.0f:%.0f', limit.name, limit.start, limit.taken)
  end
  return table.concat(texts, ',')
end

-- The same for limits that have no approvals any more. The windows stay, which tell when the key is removed.
function further.format_unused(state)
  for _, limit in ipairs(state.further) do
    limit.taken = 0
  end
  return further.format(state)
end

-- When the key is removed if nobody checks it again: not before the last of its windows ends.
local function idle_time(state)
  local at = idle_at(state.start, state.window)
  for _, limit in ipairs(state.further or {}) do
    at = math.max(at, limit.start + limit.window)
  end
  return at
end

local function read_more(state_key, state)
  local values = redis.call('HMGET', state_key, unpack(MORE))
  state.has_more = true
  state.stored_expires = tonumber(values[1])
  state.ticket = tonumber(values[2])
  state.hold_until = tonumber(values[3])
  state.unsorted = tonumber(values[4])
  state.serving = tonumber(values[5])
  state.served = tonumber(values[6])
  -- Earlier versions do not write these.
  state.blocked = tonumber(values[7] or 0)
  state.hits = tonumber(values[8] or 0)
  if values[9] and values[9] ~= '0' then
    read_holds(state, values[9])
  end
  state.paused_until = tonumber(values[10] or 0)
  state.next_window = tonumber(values[11] or 0)
  state.hold_seen = tonumber(values[13] or 0)
  state.hold_again = tonumber(values[14] or 0)
  state.set_at = tonumber(values[15] or 0)
  if state.further then
    further.read(state, values[12])
  end
end

-- The state with these values, or nil if there is none.
local function state_of(state_key, values)
  if not values[2] then
    return nil
  end
  local limits = parse_limits(values[2])
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
  further.set(state, limits, state.start)
  if values[6] then
    state.orders_holds = values[6] == '2'
    read_more(state_key, state)
  end
  state.expires = state.stored_expires > 0 and state.stored_expires or idle_time(state)
  return state
end

local function read_state(state_key)
  return state_of(state_key, read_values(state_key))
end

-- The state of a new key. `start`: of its window. `idle`: the state of the instance before, if it is known.
local function new_state(call, start, idle, limits)
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
  state.expires = idle_at(state.start, state.window)
  return state
end

-- When Redis got the key, in ms since 1970. Few calls need it, so it is read only for them.
local function born_at(keys, state)
  state.born = state.born or tonumber(redis.call('HMGET', keys.state, 'born')[1])
  return state.born
end

-- The `expires` to store: 0 if it follows from the windows, as after each check.
local function expires_to_store(state)
  return state.expires == idle_time(state) and 0 or state.expires
end

local function says_nothing_more(state)
  return state.ticket == 0 and state.hold_until == 0 and state.unsorted == 0 and state.serving == 0
    and state.served == 0 and state.blocked == 0 and state.hits == 0 and state.lapses == 0
    and state.paused_until == 0 and state.next_window == 0 and not state.further and expires_to_store(state) == 0
end

local function write_more(state_key, state)
  if says_nothing_more(state) then
    redis.call('HDEL', state_key, 'more', unpack(MORE))
    return
  end
  redis.call(
    'HSET', state_key, 'more', state.orders_holds and 2 or 1, 'expires', expires_to_store(state), 'ticket', state.ticket,
    'hold_until', state.hold_until, 'unsorted', state.unsorted, 'serving', state.serving, 'served', state.served,
    'blocked', state.blocked, 'hits', state.hits, 'holds', format_holds(state),
    'paused_until', state.paused_until, 'next_window', state.next_window, 'further', further.format(state),
    'hold_seen', state.hold_seen, 'hold_again', state.hold_again, 'set_at', state.set_at
  )
end

-- A field of MORE has changed.
local function more_changed(state)
  state.has_more, state.changed = true, true
end

-- Sets a field of MORE.
local function set_more(state, field, value)
  state[field] = value
  more_changed(state)
end

-- Removes a name that may be left from a state that Redis has lost. If there is none, an UNLINK would let a new key into a
-- full memory (`decide_in_full_memory` in lib/instance).
local function remove_leftover(name)
  if redis.call('EXISTS', name) == 1 then
    redis.call('UNLINK', name)
  end
end

-- `state.changed`: more than the counters, the window and the limits changed.
local function write_state(keys, state)
  local name = keys.state
  if state.is_new then
    redis.call(
      'HSET', name, 'start', digits(state.start), 'limits', format_limits(state), 'approved', digits(state.approved),
      'turn', digits(state.turn), 'born', digits(state.born)
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
    redis.call('HSET', name, 'limits', format_limits(state))
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
    redis.call('HSET', name, 'further', further.format(state))
  end
end
