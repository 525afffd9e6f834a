-- Decides plain checks (`isPlain` in src/limiter/limiter.ts) of bare keys (check.lua). lib/checks decides them in the same way, as
-- it decides all others. But these need no tables and few calls, which halves Redis's time for them.
-- test/redis/lua/checks.test.ts compares the two ways.

local digits = require 'lib/digits'
local key_names = require 'lib/key-names'
local generations = require 'lib/generations'
local window = require 'limits/window'

local plain_checks = {}

-- Each lookup in a table costs nearly all checks.
local REQUESTS, IN_WINDOW = key_names.REQUESTS, key_names.IN_WINDOW
local is_current, windows_share_set = window.is_current, generations.windows_share_set

-- How many of the checks are approved, from the first on. `math.min` and `math.max` would cost Redis 3 % of a plain check.
local function count_approved(size, own, approved)
  local free = own.max - approved
  if free >= size then
    return size
  end
  return free > 0 and free or 0
end

local function approve(requests, batch, granted)
  local first_id = batch.first_id
  return redis.call('SADD', requests, unpack(batch.arguments, first_id, first_id + granted - 1))
end

-- In mid-window of a fixed window.
local function decide_in_window(call, batch, size, own, start, values)
  local names, first_key = batch.names, batch.first_key
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local approved = tonumber(values[3])
  local granted = count_approved(size, own, approved)
  if granted > 0 then
    local added = approve(requests, batch, granted)
    approved = approved + added
    redis.call('HSET', state, 'approved', digits(approved))
    if redis.call('SCARD', requests) == added then
      redis.call('PEXPIREAT', requests, digits(window.idle_at(start, own.window)))
    end
  end
  if granted < size then
    redis.call('HSET', state, 'denied', digits((values[5] or 0) + size - granted))
  end
  return window.micros_to_end(start, own.window, call.now_us), approved, granted
end

local function decide_in_new_window(call, batch, size, own, start, values)
  local names, first_key = batch.names, batch.first_key
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local generation = tonumber(values[6])
  local had_requests = values[3] ~= '0'
  if had_requests then
    generation = generations.after(generation)
  end
  local granted = count_approved(size, own, 0)
  redis.call('HSET', state, 'start', digits(start), 'approved', digits(granted), 'gen', digits(generation))
  if values[5] or granted < size then
    redis.call('HSET', state, 'denied', digits(size - granted))
  end
  if had_requests then
    -- The names of past requests come last.
    generations.keep(requests, names[first_key + batch.names_given - generations.COUNT + generation - 1])
  end
  local expiry = digits(window.idle_at(start, own.window))
  if granted > 0 then
    approve(requests, batch, granted)
    redis.call('PEXPIREAT', requests, expiry)
  end
  redis.call('PEXPIREAT', state, expiry)
  return window.micros_to_end(start, own.window, call.now_us), granted, granted
end

-- Decides the plain checks of a batch, of a key whose own limit is a fixed window. `values`: from `key_names.read_values`.
-- Returns the microseconds until there may be room again, what counts of the limit, and how many of the checks are approved,
-- from the first on. Returns nil and changes nothing if a set of ids may become full, if windows share it, if the clock has
-- gone back, if the key is idle, or if a window begins without the names for it.
--
-- The first write takes memory, so that a full Redis refuses it (lib/stored).
function plain_checks.decide_in_windows(call, batch, values)
  local size, own = batch.size, batch.rules.own
  local start, length, now_ms = tonumber(values[1]), own.window, call.now_ms
  if values[3] + size > call.max_ids or windows_share_set(call, length) then
    return nil
  elseif is_current(start, length, now_ms) then
    return decide_in_window(call, batch, size, own, start, values)
  elseif now_ms >= start and now_ms < window.idle_at(start, length) and batch.names_given > IN_WINDOW then
    return decide_in_new_window(call, batch, size, own, window.start_of(start, length, now_ms), values)
  end
end

-- Returns the parts of a state that the limit reads and changes, in a key without holds. All keys with the same rules share
-- them, one after the other: another table for each check costs Redis 4 % of it.
local function shared_state(declared, start, begin_limit)
  local state = declared.shared_state
  if not state then
    state = { own = begin_limit(declared, start), held = 0, held_ids = 0, first_lapse = 0, unclaimed = 0, unclaimed_held = 0 }
    declared.shared_state = state
  end
  local own = state.own
  own.start, own.id_names, own.id_counts = start, nil, nil
  state.remembered = nil
  return state
end

-- Reads the limit, and moves it on to the time of the call. Returns false if its period or a generation of its ids has
-- ended, or if the clock has gone back.
local function read_limit(state, own, call, text)
  own:read(state, cjson.decode(text))
  if own:begin_by(call.now_ms) or not own:is_current(call.now_ms) then
    return false
  end
  own:move(call.now_us)
  return own.generation == own.kept_generation
end

-- Approves the first check, which fits, and as many of the next ones as fit. Returns how many. Returns nil and changes
-- nothing if the ids may become too many. `text`: of the limit, as it is stored. It reads each name before the first write: while a
-- slot of a cluster moves, Redis fails a command on a name that it does not find.
local function approve_fitting(keys, state, call, batch, text)
  local own, granted = state.own, 0
  local had_requests = redis.call('SCARD', keys.requests) > 0
  if own:free_ids(keys, state, call, false) < batch.size then
    return nil
  end
  while granted < batch.size and (granted == 0 or own:fits(1)) do
    own:take(keys, state, call, batch.arguments[batch.first_id + granted], 1, false)
    granted = granted + 1
  end
  local own_text = '{' .. own:format() .. '}'
  -- It is the same if all ids are of approvals from before.
  if own_text ~= text then
    redis.call('HSET', keys.state, 'approved', digits(own.used), 'own', own_text)
  end
  if state.remembered and not had_requests then
    redis.call('PEXPIREAT', keys.requests, digits(window.idle_at(own.start, own.window)))
  end
  return granted
end

-- The same for a key whose own limit has no boundary, while its period goes on. The limit itself counts, as for
-- all other checks. But there is no queue, hold or pause to look at, and little changes. `values`: from `key_names.read_all_values`.
-- `begin_limit`: `kinds.begin`. An EVALSHA does not define the kinds for checks of fixed windows.
function plain_checks.decide_in_period(call, batch, values, begin_limit)
  local declared, state_key = batch.rules.own, batch.names[batch.first_key]
  local text = values[7]
  if not text or windows_share_set(call, declared.window) then
    return nil
  end
  local state = shared_state(declared, tonumber(values[1]), begin_limit)
  local own = state.own
  if not read_limit(state, own, call, text) then
    return nil
  end
  local granted = 0
  if own:fits(1) then
    local keys = { state = state_key, requests = batch.names[batch.first_key + REQUESTS] }
    granted = approve_fitting(keys, state, call, batch, text)
    if not granted then
      return nil
    end
  end
  if granted < batch.size then
    redis.call('HSET', state_key, 'denied', digits((values[5] or 0) + batch.size - granted))
  end
  -- One hit has room when there is more room than now.
  local micros = math.floor(own:room_at(state, 1) * 1000 + 0.5) - call.now_us
  return micros, digits(own.used) .. ':' .. digits(micros), granted
end

return plain_checks
