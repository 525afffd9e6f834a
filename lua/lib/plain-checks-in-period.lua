-- Decides plain checks of a key whose own limit has no boundary, while its period goes on. The limit
-- itself counts, as for all other checks. But such a check has to look at no queue, hold or pause, and changes little.

local digits = require 'lib/digits'
local generations = require 'lib/generations'
local json = require 'lib/json'
local key_names = require 'lib/key-names'
local kinds = require 'limits/kinds'
local window = require 'limits/window'

local plain_checks_in_period = {}

-- Returns the parts of a state that the limit reads and changes, in a key without holds. All keys with the same rules share
-- them, one after the other: another table for each check costs Redis 4 % of it.
local function shared_state(declared, start)
  local state = declared.shared_state
  if not state then
    state = { own = kinds.begin(declared, start), held = 0, held_ids = 0, first_lapse = 0, unclaimed = 0, unclaimed_held = 0 }
    declared.shared_state = state
  end
  local own = state.own
  own.start, own.id_names, own.id_counts = start, nil, nil
  state.remembered = nil
  return state
end

-- Reads the limit, and moves it on to the time of the call. Returns false if its period or a generation of its ids has
-- ended, or if the clock has gone back.
local function read(state, own, call, text)
  own:read(state, cjson.decode(text))
  if own:begin_by(call.now_ms) or not own:is_current(call.now_ms) then
    return false
  end
  own:move(call.now_us)
  return own.generation == own.kept_generation
end

-- Approves the first check, which fits, and as many of the next ones as fit. Returns how many. Returns nil and changes
-- nothing if the ids may become too many. `text`: of the limit, as it is stored. It reads each name before the first write: while a slot of a cluster moves, Redis
-- fails a command on a name that it does not find.
local function approve(keys, state, call, batch, text)
  local own, granted = state.own, 0
  local had_requests = redis.call('SCARD', keys.requests) > 0
  if own:free_ids(keys, state, call, false) < batch.size then
    return nil
  end
  while granted < batch.size and (granted == 0 or own:fits(1)) do
    own:take(keys, state, call, batch.arguments[batch.first_id + granted], 1, false)
    granted = granted + 1
  end
  local own_text = json.object(own:format({}))
  -- It is the same if all ids are of approvals from before.
  if own_text ~= text then
    redis.call('HSET', keys.state, 'approved', digits(own.used), 'own', own_text)
  end
  if state.remembered and not had_requests then
    redis.call('PEXPIREAT', keys.requests, digits(window.idle_at(own.start, own.window)))
  end
  return granted
end

-- The same as `decide` of lib/plain-checks, for these limits. `values`: from `key_names.read_all_values`.
function plain_checks_in_period.decide(call, batch, values)
  local declared, state_key = batch.rules.own, batch.names[batch.first_key]
  local text = values[7]
  if not text or generations.windows_share_set(call, declared.window) then
    return nil
  end
  local state = shared_state(declared, tonumber(values[1]))
  local own = state.own
  if not read(state, own, call, text) then
    return nil
  end
  local granted = 0
  if own:fits(1) then
    local keys = { state = state_key, requests = batch.names[batch.first_key + key_names.REQUESTS] }
    granted = approve(keys, state, call, batch, text)
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

return plain_checks_in_period
