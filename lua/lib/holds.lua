-- The approvals that are held. Each counts in every window until it is released, or until its hold lapses. A hash has
-- them: id -> `<when the hold lapses, in ms since 1970>:<its length in ms>`, with `*<hits>` after it
-- if the approval has not exactly one hit. Held ids are in no other set until their holds end.
--
-- The state's field `holds` sums them up, so that other keys need no look at the hash:
--   held        the hits of all held approvals; `approved` includes them
--   lapses      no hold lapses before this time, in ms since 1970; 0 if there is none. A renewal leaves it as it is
--   held_until  no hold lapses after this time
--   max_holds   how many holds the key may have, by the caller that asked for one last; 0 if that is unknown
--@include lib/chunks
--@include lib/digits
--@include lib/requests
--@include lib/state

local function name_of_holds(keys)
  return keys.state .. ':holds'
end

local function set_holds(state, held, lapses, held_until)
  state.held, state.lapses, state.held_until = held, lapses, held_until
  state.has_more, state.changed = true, true
end

-- How many more approvals may be held.
local function free_holds(keys, state)
  if state.max_holds == 0 then
    return math.huge
  end
  return state.max_holds - (has_holds(state) and redis.call('HLEN', name_of_holds(keys)) or 0)
end

local function format_hold(lapses, millis, hits)
  return digits(lapses) .. ':' .. digits(millis) .. (hits == ONE_HIT and '' or '*' .. digits(hits))
end

-- Returns when a hold lapses, its length in ms, and its hits.
local function parse_hold(text)
  local lapses, millis, hits = string.match(text, '^(%d+):(%d+)%*?(%d*)$')
  return tonumber(lapses), tonumber(millis), tonumber(hits) or ONE_HIT
end

-- Returns the same for an id; nil if it is not held.
local function read_hold(keys, state, id)
  local text = has_holds(state) and redis.call('HMGET', name_of_holds(keys), id)[1]
  if text then
    return parse_hold(text)
  end
end

local function write_hold(keys, state, call, id, millis, hits)
  local lapses = call.now_ms + millis
  redis.call('HSET', name_of_holds(keys), id, format_hold(lapses, millis, hits))
  local first = has_holds(state) and math.min(state.lapses, lapses) or lapses
  set_holds(state, state.held, first, math.max(state.held_until, lapses))
end

-- Holds an approval, unless it is held already.
local function add_hold(keys, state, call, id, hits, millis)
  if not has_holds(state) then
    -- It may be left from a state that Redis has lost.
    redis.call('UNLINK', name_of_holds(keys))
  elseif read_hold(keys, state, id) then
    return
  end
  write_hold(keys, state, call, id, millis, hits)
  state.held = state.held + hits
  state.approved = state.approved + hits
end

-- The hits of held approvals are these from now on, since some were taken away.
local function take_held(keys, state, hits)
  if redis.call('EXISTS', name_of_holds(keys)) == 1 then
    set_holds(state, state.held - hits, state.lapses, state.held_until)
    state.approved = state.approved - hits
  else
    -- Also if somebody has removed the hash.
    state.approved = state.approved - state.held
    set_holds(state, 0, 0, 0)
  end
end

-- Ends the hold of an id. Returns its hits, or nil if the id is not held.
local function release_hold(keys, state, id)
  local _, _, hits = read_hold(keys, state, id)
  if hits then
    redis.call('HDEL', name_of_holds(keys), id)
    take_held(keys, state, hits)
  end
  return hits
end

-- The holds that have lapsed: their ids, and their hits together. Also when the first of the others lapses.
local function find_lapsed(keys, now_ms)
  local ids, hits, first = {}, 0, math.huge
  local holds = redis.call('HGETALL', name_of_holds(keys))
  for i = 1, #holds, 2 do
    local lapses, _, of_hold = parse_hold(holds[i + 1])
    if lapses <= now_ms then
      ids[#ids + 1] = holds[i]
      hits = hits + of_hold
    else
      first = math.min(first, lapses)
    end
  end
  return ids, hits, first
end

-- Ends the holds that have lapsed. Their ids are not remembered: whoever asks about one has not heard of the approval,
-- and may be approved again.
local function end_lapsed_holds(keys, state, call)
  if not has_holds(state) or call.now_ms < state.lapses then
    return
  end
  local ids, hits, first = find_lapsed(keys, call.now_ms)
  call_in_chunks('HDEL', name_of_holds(keys), ids)
  set_holds(state, state.held, first, state.held_until)
  take_held(keys, state, hits)
  if #ids > 0 then
    make_room(state, call)
  end
end

-- Gives a held approval another length and other hits, and renews the hold. A length or hits of nil stay as they are.
-- Returns the ms until it lapses, or nil if the id is not held.
local function renew_hold(keys, state, call, id, millis, hits)
  local _, millis_before, hits_before = read_hold(keys, state, id)
  if not hits_before then
    return nil
  end
  millis, hits = millis or millis_before, hits or hits_before
  local first_before = state.lapses
  write_hold(keys, state, call, id, millis, hits)
  -- Replicas that wait know a later time.
  state.has_news = state.has_news or state.lapses < first_before
  state.held = state.held + hits - hits_before
  state.approved = state.approved + hits - hits_before
  if hits < hits_before then
    make_room(state, call)
  end
  return millis
end
