-- The further limits of a key, which its rules list besides its maximum (lib/limits-text). A check takes from all limits or
-- from none. Each limit has windows of its own, back to back from the check that was the first under it.
--
-- `state.further` is nil in a key without them, else a list with, for each limit in the order of the rules:
--   name, window, max, counts, keeps   as in lib/limits-text
--   start                              of its window, in ms since 1970
--   taken                              what the approvals take of it, held ones included unless it keeps what is released
-- The state's field `further` has `<name>=<start>:<taken>` for each, with a comma between two.
--
-- A hash for each limit has the approvals of its window, id -> what each takes. Held ids are in it only if the limit keeps
-- what is released, since the others count while they are held. Its name is built here: a declared name costs Redis time
-- in each call.

local digits = require 'lib/digits'
local further_fields = require 'lib/further-fields'
local stored = require 'lib/stored'
local window = require 'lib/window'

local further = {}

function further.name_of(keys, limit)
  return keys.state .. ':limit:' .. limit.name
end

-- The names of the hashes, for `unpack`.
function further.names(keys, state)
  local names = {}
  for i, limit in ipairs(state.further or {}) do
    names[i] = further.name_of(keys, limit)
  end
  return names
end

-- What an approval with so many hits takes of a limit.
function further.taken_of(limit, hits)
  return limit.counts == 'hits' and hits or 1
end

-- What the held approvals take of a limit.
function further.held_of(state, limit)
  if limit.keeps then
    return 0
  end
  return limit.counts == 'hits' and state.held or state.held_ids
end

-- Moves each limit to the window that holds `now_ms`. Returns the limits whose windows have ended.
function further.roll(state, now_ms)
  local ended = {}
  for _, limit in ipairs(state.further or {}) do
    if not window.is_current(limit.start, limit.window, now_ms) then
      limit.start = window.start_of(limit.start, limit.window, now_ms)
      limit.taken = further.held_of(state, limit)
      ended[#ended + 1] = limit
    end
  end
  return ended
end

-- The same for a state that is written.
function further.end_windows(keys, state, now_ms)
  for _, limit in ipairs(further.roll(state, now_ms)) do
    redis.call('UNLINK', further.name_of(keys, limit))
    stored.more_changed(state)
    state.made_room = true
  end
end

-- Gives a new key its further limits. Approvals of a state that Redis has lost do not count.
function further.begin(keys, state, limits, start)
  if not limits.further then
    return
  end
  further_fields.set(state, limits, start)
  for _, name in ipairs(further.names(keys, state)) do
    stored.remove_leftover(name)
  end
  stored.more_changed(state)
end

function further.forget(keys, state)
  if state.further then
    redis.call('UNLINK', unpack(further.names(keys, state)))
  end
end

-- The limits of rules come into force. A limit that the key had before keeps the start of its window and what was
-- approved in it. If its window is over by a shorter length, all of that counts in the window that is current by that
-- length: ids have no times, and some were approved in it.
function further.take_rules(keys, state, limits, now_ms)
  if state.further_text == limits.further_text then
    return
  end
  local before = {}
  for _, limit in ipairs(state.further or {}) do
    before[limit.name] = limit
  end
  further_fields.set(state, limits, now_ms)
  for _, limit in ipairs(state.further or {}) do
    local kept = before[limit.name]
    if kept and kept.counts == limit.counts and kept.keeps == limit.keeps then
      before[limit.name] = nil
      limit.start, limit.taken = kept.start, kept.taken
      if not window.is_current(limit.start, limit.window, now_ms) then
        limit.start = window.start_of(limit.start, limit.window, now_ms)
      end
      redis.call('PEXPIREAT', further.name_of(keys, limit), digits(window.idle_at(limit.start, limit.window)))
    else
      -- Ids may be left from before the key was idle.
      redis.call('UNLINK', further.name_of(keys, limit))
      limit.taken = further.held_of(state, limit)
    end
    -- A longer window may end after the key would be removed.
    if limit.taken > 0 then
      state.expires = math.max(state.expires, limit.start + limit.window)
    end
  end
  for _, limit in pairs(before) do
    redis.call('UNLINK', further.name_of(keys, limit))
  end
  stored.more_changed(state)
  state.made_room = true
end

-- Whether each limit has room for one hit.
function further.has_room(state)
  for _, limit in ipairs(state.further or {}) do
    if limit.taken >= limit.max then
      return false
    end
  end
  return true
end

function further.fits(state, hits)
  for _, limit in ipairs(state.further or {}) do
    if limit.taken + further.taken_of(limit, hits) > limit.max then
      return false
    end
  end
  return true
end

-- Whether a check with so many hits takes more than a limit has.
function further.exceeds(state, hits)
  for _, limit in ipairs(state.further or {}) do
    if further.taken_of(limit, hits) > limit.max then
      return true
    end
  end
  return false
end

-- How many more ids the hash of a limit may have.
function further.free_ids(keys, limit, call, is_held)
  local needs_no_id = is_held and not limit.keeps
  if needs_no_id or (limit.counts == 'requests' and limit.max <= call.max_ids) then
    return math.huge
  end
  return call.max_ids - redis.call('HLEN', further.name_of(keys, limit))
end

function further.has_place(keys, state, call, is_held)
  for _, limit in ipairs(state.further or {}) do
    if further.free_ids(keys, limit, call, is_held) <= 0 then
      return false
    end
  end
  return true
end

-- What is left for waiters, to be taken by `further.take_room`.
function further.room(keys, state, call)
  local room = {}
  for i, limit in ipairs(state.further or {}) do
    room[i] = { free = limit.max - limit.taken, ids = further.free_ids(keys, limit, call, false) }
  end
  return room
end

-- Whether a waiter fits into what is left, which it takes. One that needs more than a maximum, which was lowered since,
-- gets a window for itself.
function further.take_room(state, room, hits, is_held)
  for i, limit in ipairs(state.further or {}) do
    local left, needs_id = room[i], limit.keeps or not is_held
    if not (further.taken_of(limit, hits) <= left.free or left.free == limit.max) or (needs_id and left.ids <= 0) then
      return false
    end
  end
  for i, limit in ipairs(state.further or {}) do
    local left = room[i]
    left.free = left.free - further.taken_of(limit, hits)
    left.ids = left.ids - ((limit.keeps or not is_held) and 1 or 0)
  end
  return true
end

-- Adds an approval to all limits. `is_held`: `further.hold` adds it to those that count it while it is held. An id that
-- the window of a limit has already does not count again: the key may have forgotten the approval.
function further.add(keys, state, id, hits, is_held)
  for _, limit in ipairs(state.further or {}) do
    if limit.keeps or not is_held then
      local taken, name = further.taken_of(limit, hits), further.name_of(keys, limit)
      limit.taken = limit.taken + taken - (further.read_taken(keys, limit, id) or 0)
      redis.call('HSET', name, id, digits(taken))
      if redis.call('HLEN', name) == 1 then
        redis.call('PEXPIREAT', name, digits(window.idle_at(limit.start, limit.window)))
      end
      state.further_written = true
    end
  end
end

-- So many more hits and ids are held.
function further.hold(state, hits, ids)
  for _, limit in ipairs(state.further or {}) do
    if not limit.keeps then
      limit.taken = limit.taken + (limit.counts == 'hits' and hits or ids)
      stored.more_changed(state)
    end
  end
end

-- What an approval takes of a limit as one of its window; nil if it is not among them.
function further.read_taken(keys, limit, id)
  local taken = redis.call('HMGET', further.name_of(keys, limit), id)[1]
  return taken and tonumber(taken)
end

-- What the approvals take of all limits of the key together.
function further.taken_of_all(state)
  local sum = state.approved
  for _, limit in ipairs(state.further or {}) do
    sum = sum + limit.taken
  end
  return sum
end

-- Gives back what an approval takes. `is_unused`: nobody has got it, so that limits which keep what is released also give
-- it back. Returns whether any limit had it.
function further.release(keys, state, id, is_unused)
  local is_released = false
  for _, limit in ipairs(state.further or {}) do
    local taken = (is_unused or not limit.keeps) and further.read_taken(keys, limit, id)
    if taken then
      redis.call('HDEL', further.name_of(keys, limit), id)
      limit.taken = limit.taken - taken
      stored.more_changed(state)
      is_released = true
    end
  end
  return is_released
end

-- Gives an approval other hits. Returns whether any limit has it, and how many hits more it takes of all together.
function further.amend(keys, state, id, hits)
  local is_amended, more = false, 0
  for _, limit in ipairs(state.further or {}) do
    local before = further.read_taken(keys, limit, id)
    if before then
      local taken = further.taken_of(limit, hits)
      redis.call('HSET', further.name_of(keys, limit), id, digits(taken))
      limit.taken = limit.taken + taken - before
      stored.more_changed(state)
      is_amended, more = true, more + taken - before
    end
  end
  return is_amended, more
end

-- When a limit has room again if it has none, in ms since 1970.
function further.room_at(state, limit)
  local window_end = limit.start + limit.window
  return limit.keeps and window_end or stored.more_room_at(state, window_end, further.held_of(state, limit), limit.max)
end

-- The fewest microseconds until a check with so many hits would have its turn in each limit, after `places` others of one
-- hit; 0 if there is room for all.
function further.micros_to_turn(state, call, places, hits)
  local most = 0
  for _, limit in ipairs(state.further or {}) do
    local room = math.max(0, limit.max - limit.taken)
    local missing = places + math.min(further.taken_of(limit, hits), limit.max) - room
    if missing > 0 then
      local start, length = limit.start, limit.window
      most = math.max(most, window.micros_to_missing(start, length, call.now_us, missing, limit.max, length))
    end
  end
  return most
end

return further
