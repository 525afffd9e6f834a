-- A key as of now, for scripts that write nothing.

local clock_step = require 'lib/clock-step'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local limits_text = require 'lib/limits-text'
local pause = require 'lib/pause'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local room = require 'lib/room'
local stored = require 'lib/stored'

local look = {}

-- Returns the state, the tally of its queue, and how many wait; nil if there is no such key. A window that has ended
-- counts as empty, and a key that has been idle for too long as removed. `call`: of a script that knows rules, or nil.
function look.at(keys, now_us, call)
  local now_ms = math.floor(now_us / 1000)
  keys.only_looks = true
  local state = stored.read(keys.state)
  if not state then
    return nil
  end
  if call then
    key_limits.take_calendars(state, call)
  end
  clock_step.begin_by_now(state, now_ms)
  key_limits.ask_all(state, 'move', now_us, state)
  if call then
    recovery.note_call(state, call)
  end
  recovery.end_past(state, now_ms)
  pause.end_past(state, now_ms)
  holds.end_lapsed(keys, state, now_ms)
  local tally = replicas.load(keys, now_ms)
  local may_be_idle = room.may_be_idle(state, now_ms)
  if may_be_idle and call then
    -- A call that knows its history would keep the key for replicas that may come back.
    recovery.begin_if_redis_was_down(state, tally, call)
  end
  if may_be_idle and recovery.count_waiting(state, tally) == 0 then
    return nil
  end
  for _, limit in ipairs(key_limits.roll_further(state, now_ms)) do
    limit.has_no_ids = limit.has_boundary
  end
  in_force.begin_window(keys, state, now_ms, call)
  return state, tally, recovery.count_waiting(state, tally)
end

-- What the scripts reply of a key. inspect.lua says what it is.
function look.describe(state, waiting, now_ms)
  local counted = {}
  for i, limit in ipairs(state.limits) do
    counted[i] = {
      used = limit.used, millisToWindowEnd = limit:ends() - now_ms,
      windowMillis = limit.algorithm == 'calendar' and limit:length() or nil,
    }
  end
  return {
    limits = limits_text.format(state), counted = counted, denied = state.denied, waiting = waiting, held = state.held,
    pausedMillis = math.max(0, state.paused_until - now_ms),
  }
end

return look
