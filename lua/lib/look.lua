-- A key as of now, for scripts that write nothing.

local clock_step = require 'lib/clock-step'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local kinds = require 'limits/kinds'
local key_limits = require 'limits/key-limits'
local limits_text = require 'lib/limits-text'
local pause = require 'lib/pause'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local stored = require 'lib/stored'

local look = {}

-- Leaves out the holds that have lapsed.
local function look_at_holds(keys, state, now_ms)
  if not stored.has_holds(state) or now_ms < state.first_lapse then
    return
  end
  local _, held, held_ids, first = holds.find_lapsed(keys, state, now_ms)
  holds.keep(state, held, held_ids, first)
end

-- Returns the state, the tally of its queue, and how many wait; nil if there is no such key. A window that has ended
-- counts as empty, and a key that has been idle for too long as removed.
function look.at(keys, now_us)
  local now_ms = math.floor(now_us / 1000)
  local state = stored.read(keys.state)
  if not state then
    return nil
  end
  clock_step.begin_by_now(state, now_ms)
  key_limits.move(state, now_us)
  recovery.end_past(state, now_ms)
  pause.end_past(state, now_ms)
  look_at_holds(keys, state, now_ms)
  local tally = replicas.load(keys, now_ms)
  local waiting = recovery.count_waiting(state, tally)
  if now_ms >= state.expires and waiting == 0 and not stored.has_holds(state) and not pause.is_on(state) then
    return nil
  end
  if state.own:roll(state, now_ms, in_force.length_of_next_window(state)) then
    state.denied = 0
    in_force.take_next_window(state)
  end
  key_limits.roll_further(state, now_ms)
  return state, tally, waiting
end

-- What the scripts reply of a key: names, each with its value after it. inspect.lua says what they are.
function look.describe(state, waiting, now_ms)
  local used = {}
  for i, limit in ipairs(state.limits) do
    used[i] = string.format('%.0f:%.0f', limit.used, limit:ends() - now_ms) .. kinds.format_length(limit)
  end
  return {
    'limits', limits_text.format(state), 'used', table.concat(used, ','), 'denied', state.denied, 'waiting', waiting,
    'held', state.held, 'pause_left', math.max(0, state.paused_until - now_ms),
  }
end

return look
