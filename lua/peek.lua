-- Whether a check that does not wait would be approved now, and if not, when its turn would come. Writes nothing.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them, 7 the hits of the check, 8 the length of its hold in ms, or '', 9 the most holds that
--       the key may have, 10 the greatest overrides that count, as in check.lua, or ''
-- Reply 1 microseconds until there may be room, 2 the limits in force, as lib/limits-text has them, 3 what counts of them:
--       see `room.used`, 4 a verdict of check.lua: 1 approved, 0 denied, -3 failed because the set of ids or of holds is
--       full, -4 denied because its hits are more than the maximum, -5 denied because the key is paused, 5 the fewest
--       microseconds until its turn if it joined the queue now; 0 if it would be approved
--
-- A check ends windows and holds, takes the rules of its caller, and serves the queue before it is decided. This script
-- does the same to the state that it has read, by the same functions where these write nothing. `call.only_looks` keeps
-- the others from it. After the clock has gone back, a hold lapses when it would have: a check makes it shorter.

local calendars = require 'lib/calendars'
local calls = require 'lib/calls'
local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local look = require 'lib/look'
local named_requests = require 'lib/named-requests'
local overrides = require 'lib/overrides'
local pause = require 'lib/pause'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'
local verdicts = require 'lib/verdicts'
local weight = require 'lib/weight'

-- A key that a check would begin, and the tally of its queue, which may be left from one that Redis has lost.
local function begin(keys, call)
  local state = stored.new(call, call.now_ms, nil, call.rules)
  for _, limit in ipairs(state.limits) do
    limit.has_no_ids = true
  end
  local tally = replicas.load(keys, call.now_ms)
  if tally.places > 0 then
    named_requests.find_leftovers(keys, state, call)
  end
  return state, tally
end

local function free_holds(state)
  return state.max_holds == 0 and math.huge or state.max_holds - state.held_ids + state.unclaimed
end

-- Counts waiters that would be approved. `left`: what they leave of the limits.
local function count_served(state, call, served, left)
  for i, limit in ipairs(state.limits) do
    limit:count(limit:free() - left.limits[i].free)
  end
  for _, waiter in ipairs(served) do
    local held_millis = waiter.keep or waiter.hold
    if held_millis then
      local lapses = call.now_ms + held_millis
      local first = stored.has_holds(state) and math.min(state.first_lapse, lapses) or lapses
      state.held, state.held_ids = state.held + waiter.hits, state.held_ids + 1
      holds.set_lapses(state, first, math.max(state.last_lapse, lapses))
      state.unclaimed = state.unclaimed + (waiter.hold and 0 or 1)
    end
  end
  state.served = call.now_ms
end

-- Approves waiters from the head of the queue in the state. Returns them, and whether the head needs more than is left.
local function take_heads(keys, state, call, tally)
  local left = { limits = key_limits.left(keys, state, call), holds = free_holds(state) }
  local most, served, is_blocked = math.min(math.ceil(state.own:free()), serving.MOST_SERVED), {}, false
  for _, waiter in ipairs(queue.first_waiters(keys, state, tally, call.now_ms, most, serving.MOST_TAKEN)) do
    is_blocked = not queue.takes_its_room(state, left, waiter)
    if is_blocked then
      state.head_hits = waiter.hits
      break
    end
    served[#served + 1] = waiter
  end
  if #served > 0 then
    count_served(state, call, served, left)
  end
  return served, is_blocked
end

-- Serves the queue in the state, as lib/serving would for a check. Returns how many still wait.
local function serve(keys, state, call, tally)
  if tally.places > 0 then
    recovery.begin_if_redis_was_down(state, tally, call)
  end
  local waiting = recovery.count_waiting(state, tally)
  if waiting == 0 or room.is_closed(state) then
    return waiting
  end
  key_limits.begin_serving(state)
  local served, is_blocked = {}, false
  if key_limits.fit(state, 1) then
    served, is_blocked = take_heads(keys, state, call, tally)
    waiting = waiting - #served
  end
  local has_room = key_limits.fit(state, 1)
  if not has_room then
    state.head_hits = nil
  end
  state.serves_more = waiting > 0 and has_room and not is_blocked
  if waiting == 0 then
    key_limits.end_serving(state)
  end
  return waiting
end

-- The verdict on a check. `waiting`: how many wait before it.
local function decide(keys, state, call, waiting, hits, hold)
  local fits = key_limits.fit(state, hits)
  local is_kept = (not hold or free_holds(state) > 0) and key_limits.have_free_ids(keys, state, call, hold)
  if fits and is_kept and waiting == 0 and not room.is_closed(state) then
    return verdicts.APPROVED
  elseif hits > 1 and key_limits.is_any_below(state, hits) then
    return verdicts.TOO_MANY_HITS
  elseif fits and not is_kept then
    return verdicts.KEY_FULL
  end
  return pause.is_on(state) and verdicts.PAUSED or verdicts.DENIED
end

-- With a maximum of 0 no turn ever comes. Then the limits say when they may have room.
local function micros_to_turn(keys, state, call, waiting, hits)
  local micros = room.micros_to_turn(keys, state, call, waiting, hits)
  return micros < math.huge and micros or room.micros_to(keys, state, call)
end

local function run(KEYS, ARGV)
  local call, keys, own = calls.read(ARGV), key_names.read(KEYS, 1), calls.FIRST_OWN
  local hits, hold, max_holds = tonumber(ARGV[own]), tonumber(ARGV[own + 1]), tonumber(ARGV[own + 2])
  local ceilings = ARGV[own + 3] ~= '' and ARGV[own + 3] or nil
  weight.begin()
  call.only_looks = true
  calendars.require_current(call)
  local state, tally = look.at(keys, call.now_us, call)
  if not state then
    state, tally = begin(keys, call)
  end
  if ceilings or state.limits_text ~= call.rules.text then
    overrides.configure(keys, state, call, { ceilings = ceilings }, state.is_new)
  end
  state.max_holds = hold and max_holds or state.max_holds
  local waiting = serve(keys, state, call, tally)
  local verdict = decide(keys, state, call, waiting, hits, hold)
  local turn = verdict == verdicts.APPROVED and 0 or micros_to_turn(keys, state, call, waiting, hits)
  return { room.micros_to(keys, state, call), limits_text.format(state), room.used(state, call), verdict, turn }
end
