-- A key as of now, for scripts that write nothing.

local clock_step = require 'lib/clock-step'
local further = require 'lib/further'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local pause = require 'lib/pause'
local queue = require 'lib/queue'
local recovery = require 'lib/recovery'
local stored = require 'lib/stored'
local window = require 'lib/window'

local look = {}

-- Leaves out the holds that have lapsed.
local function look_at_holds(keys, state, now_ms)
  if not stored.has_holds(state) or now_ms < state.lapses then
    return
  end
  local _, held, held_ids, first = holds.find_lapsed(keys, state, now_ms)
  holds.keep(state, held, held_ids, first)
end

-- Returns the state, the tally of its queue, and how many wait; nil if there is no such key. A window that has ended counts as
-- empty, and a key that has been idle for too long as removed.
function look.at(keys, now_ms)
  local state = stored.read(keys.state)
  if not state then
    return nil
  end
  clock_step.begin_by_now(state, now_ms)
  recovery.end_past(state, now_ms)
  pause.end_past(state, now_ms)
  look_at_holds(keys, state, now_ms)
  local tally = queue.load(keys, now_ms)
  local waiting = recovery.count_waiting(state, tally)
  if now_ms >= state.expires and waiting == 0 and not stored.has_holds(state) and not pause.is_on(state) then
    return nil
  end
  if not window.is_current(state.start, state.window, now_ms) then
    window.roll(state, now_ms, in_force.length_of_next_window(state))
    in_force.take_next_window(state)
  end
  further.roll(state, now_ms)
  return state, tally, waiting
end

-- The further limits, as they are stored, and `<name>=<taken>:<ms until the window ends>` for each, with a comma between
-- two; '' and '' if there are none.
local function describe_further(state, now_ms)
  local texts = {}
  for i, limit in ipairs(state.further or {}) do
    texts[i] = string.format('%s=%.0f:%.0f', limit.name, limit.taken, limit.start + limit.window - now_ms)
  end
  return state.further_text, table.concat(texts, ',')
end

-- What the scripts reply of a key: names and values in turn. inspect.lua says what they are.
function look.describe(state, waiting, now_ms)
  local further_limits, further_used = describe_further(state, now_ms)
  return {
    'window', state.window, 'max', state.max, 'queue_max', state.queue_max, 'used', state.approved,
    'denied', state.denied, 'waiting', waiting, 'held', state.held,
    'pause_left', math.max(0, state.paused_until - now_ms),
    'further_limits', further_limits, 'further_used', further_used,
  }
end

return look
