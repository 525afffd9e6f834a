-- A key as of now, for scripts that write nothing.
--@include lib/further
--@include lib/holds
--@include lib/pause
--@include lib/queue
--@include lib/recovery-hold
--@include lib/rules
--@include lib/state
--@include lib/window

-- Leaves out the holds that have lapsed.
local function look_at_holds(keys, state, now_ms)
  if not has_holds(state) or now_ms < state.lapses then
    return
  end
  local _, held, held_ids, first = holds.find_lapsed(keys, state, now_ms)
  holds.keep(state, held, held_ids, first)
end

-- How many ms the pause of a key still lasts; 0 if it is not paused.
local function pause_left(state, now_ms)
  return math.max(0, state.paused_until - now_ms)
end

-- The further limits, as they are stored, and `<name>=<taken>:<ms until the window ends>` for each, with a comma between
-- two; '' and '' if there are none.
function further.look(state, now_ms)
  local texts = {}
  for i, limit in ipairs(state.further or {}) do
    texts[i] = string.format('%s=%.0f:%.0f', limit.name, limit.taken, limit.start + limit.window - now_ms)
  end
  return state.further_text, table.concat(texts, ',')
end

-- Returns the state, the queue, and how many wait; nil if there is no such key. A window that has ended counts as
-- empty, and a key that has been idle for too long as removed.
local function look_at(keys, now_ms)
  local state = read_state(keys.state)
  if not state then
    return nil
  end
  begin_by_now(state, now_ms)
  end_hold(state, now_ms)
  end_pause(state, now_ms)
  look_at_holds(keys, state, now_ms)
  local queue = load_queue(keys, now_ms)
  local waiting = count_waiting(state, queue)
  if now_ms >= state.expires and waiting == 0 and not has_holds(state) and not is_paused(state) then
    return nil
  end
  if not is_in_window(state.start, state.window, now_ms) then
    roll_window(state, now_ms, length_of_next_window(state))
    take_next_window(state)
  end
  further.roll(state, now_ms)
  return state, queue, waiting
end
