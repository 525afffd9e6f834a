-- The approvals that are held. Each counts in every window until it is released, or until its hold lapses. A hash has
-- them: id -> `<when the hold lapses, in ms since 1970>:<its length in ms>`, with `*<hits>` after it
-- if the approval has not exactly one hit, and `/<list>` if it has a lane. Held ids are in no other set until their holds end.
--
-- A key with more than FEW holds also has their order, so that a call reads no holds but those that have lapsed: a
-- sorted set of ids, with `*<hits>` and `/<list>` after an id as above, by the time when the hold lapses. The hash alone is the
-- truth. The state's field `orders_holds` is true while the order follows it.
--
-- The state's fields sum them up, so that other keys need no look at the hash:
--   held         the hits of all held approvals, which are among what is used of each limit
--   held_ids     how many they are
--   first_lapse  no hold lapses before this time, in ms since 1970; 0 if there is none. A renewal leaves it as it is
--   last_lapse   no hold lapses after this time
--   max_holds    how many holds the key may have, by the caller that asked for one last; 0 if that is unknown

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local given_back = require 'lib/given-back'
local held = require 'limits/held'
local holders = require 'lib/holders'
local key_limits = require 'limits/key-limits'
local more = require 'lib/more'
local stored = require 'lib/stored'
local weight = require 'lib/weight'

local holds = { FEW = 50 }

-- What `holds.find_lapsed` returns if nothing is held.
local function find_nothing()
  return { lapsed = {}, hits = 0, ids = 0, by_lane = {}, first = math.huge, last_lapsed = 0 }
end

function holds.name(keys)
  return keys.state .. ':holds'
end

function holds.order_name(keys)
  return holds.name(keys) .. ':order'
end

-- How a hold says what it counts for.
local function format_terms(hits, lane)
  return (hits == 1 and '' or '*' .. digits(hits)) .. (lane and '/' .. lane or '')
end

function holds.member(id, hits, lane)
  return id .. format_terms(hits, lane)
end

-- Calls Redis with the order. Returns nil if the user may not, by the rules of an earlier version, or if the order is
-- not kept. Then the holds have none from now on.
function holds.call_order(keys, state, command, ...)
  if not state.orders_holds then
    return nil
  end
  local reply = redis.pcall(command, holds.order_name(keys), ...)
  if type(reply) == 'table' and reply.err then
    if not string.find(reply.err, "can't run this command", 1, true) then
      return redis.call(command, holds.order_name(keys), ...)
    end
    state.orders_holds = false
    more.changed(state)
    return nil
  end
  return reply
end

-- Begins the order again. `order`: a list with the time and the member of each hold.
function holds.begin_order(keys, state, order)
  redis.call('UNLINK', holds.order_name(keys))
  state.orders_holds = #order > 2 * holds.FEW
  for first = 1, #order, chunks.SIZE do
    holds.call_order(keys, state, 'ZADD', unpack(order, first, math.min(first + chunks.SIZE - 1, #order)))
  end
end

function holds.set_lapses(state, first_lapse, last_lapse)
  state.first_lapse, state.last_lapse = first_lapse, last_lapse
  more.changed(state)
end

-- This number of approvals with these hits more is held in a lane, or without one.
local function change_held(state, hits, ids, lane)
  key_limits.hold(state, hits, ids, lane)
  holds.note_held(state, hits, ids, lane)
end

-- The same where the limits count them otherwise.
function holds.note_held(state, hits, ids, lane)
  state.held, state.held_ids = state.held + hits, state.held_ids + ids
  state.lane_holds = held.with(state.lane_holds, lane, hits, ids)
end

-- From now on, these approvals are held. `left`: their hits and ids, and both by lane.
local function set_held(state, left)
  local hits, ids = left.hits - state.held, left.ids - state.held_ids
  for lane in pairs(held.lanes_of_both(state.lane_holds, left.by_lane)) do
    local before, after = held.of_lane(state.lane_holds, lane), held.of_lane(left.by_lane, lane)
    change_held(state, after.hits - before.hits, after.ids - before.ids, lane)
    hits, ids = hits - after.hits + before.hits, ids - after.ids + before.ids
  end
  change_held(state, hits, ids)
end

-- How many more approvals may be held.
function holds.free(keys, state)
  if state.max_holds == 0 then
    return math.huge
  end
  return state.max_holds - (stored.has_holds(state) and redis.call('HLEN', holds.name(keys)) - state.unclaimed or 0)
end

function holds.format(lapses, millis, hits, lane)
  return digits(lapses) .. ':' .. digits(millis) .. format_terms(hits, lane)
end

-- Returns when a hold lapses, its length in ms, its hits, and its lane or nil.
function holds.parse(text)
  local lapses, millis, hits, lane = string.match(text, '^(%d+):(%d+)%*?(%d*)/?(.*)$')
  return tonumber(lapses), tonumber(millis), tonumber(hits) or 1, lane ~= '' and lane or nil
end

-- Returns the same for an id; nothing if it is not held.
function holds.read(keys, state, id)
  local text = stored.has_holds(state) and redis.call('HMGET', holds.name(keys), id)[1]
  if text then
    return holds.parse(text)
  end
end

-- The lane of a held approval; nil if it has none.
function holds.lane_of(keys, state, id)
  if not held.has_lanes(state) then
    return nil
  end
  local _, _, _, lane = holds.read(keys, state, id)
  return lane
end

-- `hits_before`: of the same hold, if it is held already.
function holds.write(keys, state, call, id, lapses, millis, hits, lane, hits_before)
  if hits_before and hits_before ~= hits then
    holds.call_order(keys, state, 'ZREM', holds.member(id, hits_before, lane))
  end
  holds.call_order(keys, state, 'ZADD', digits(lapses), holds.member(id, hits, lane))
  redis.call('HSET', holds.name(keys), id, holds.format(lapses, millis, hits, lane))
  local first = stored.has_holds(state) and math.min(state.first_lapse, lapses) or lapses
  holds.set_lapses(state, first, math.max(state.last_lapse, lapses))
  state.set_at = call.now_ms
end

-- Holds an approval, unless it is held already. `holder`: who holds it, if its check has said so. `lane`: its list, if that is
-- a lane.
function holds.add(keys, state, call, id, hits, millis, holder, lane)
  if not stored.has_holds(state) then
    stored.remove_leftover(holds.name(keys))
    stored.remove_leftover(holds.order_name(keys))
    state.orders_holds = false
  elseif holds.read(keys, state, id) then
    return
  end
  holds.write(keys, state, call, id, call.now_ms + millis, millis, hits, lane)
  if holder then
    holders.add(keys, state, call, id, holder)
  end
  if state.held_ids == holds.FEW and not state.orders_holds then
    holds.begin_order(keys, state, holds.read_all(keys, 0).order)
  end
  change_held(state, hits, 1, lane)
  key_limits.take(keys, state, call, id, hits, true, lane)
end

-- From now on, these approvals are held. `found`: from `holds.find_lapsed`.
function holds.keep(state, found)
  if found.first == math.huge then
    state.orders_holds = false
    set_held(state, find_nothing())
    holds.set_lapses(state, 0, 0)
  else
    set_held(state, found)
    holds.set_lapses(state, found.first, state.last_lapse)
  end
end

-- Ends the hold of an id. Returns its hits, or nil if the id is not held.
function holds.release(keys, state, id)
  local _, _, hits, lane = holds.read(keys, state, id)
  if hits then
    holds.call_order(keys, state, 'ZREM', holds.member(id, hits, lane))
    redis.call('HDEL', holds.name(keys), id)
    holders.end_holds(keys, state, { id })
    if redis.call('EXISTS', holds.name(keys)) == 0 then
      holds.keep(state, find_nothing())
    else
      change_held(state, -hits, -1, lane)
      more.changed(state)
    end
  end
  return hits
end

-- Reads all holds. Returns what `find_lapsed` returns, with the order of the holds that have not lapsed.
function holds.read_all(keys, now_ms)
  local found = { lapsed = {}, hits = 0, ids = 0, by_lane = {}, first = math.huge, order = {}, last_lapsed = 0 }
  local all = weight.add(redis.call('HGETALL', holds.name(keys)), 2)
  for i = 1, #all, 2 do
    local lapses, _, hits, lane = holds.parse(all[i + 1])
    if lapses <= now_ms then
      found.lapsed[#found.lapsed + 1] = all[i]
      found.last_lapsed = math.max(found.last_lapsed, lapses)
    else
      found.hits, found.ids, found.first = found.hits + hits, found.ids + 1, math.min(found.first, lapses)
      found.by_lane = held.with(found.by_lane, lane, hits, 1)
      found.order[#found.order + 1] = digits(lapses)
      found.order[#found.order + 1] = holds.member(all[i], hits, lane)
    end
  end
  return found
end

-- When the last of the holds lapses; of many without an order, when it lapses at the latest.
function holds.last_lapse(keys, state)
  local last = tonumber((holds.call_order(keys, state, 'ZRANGE', -1, -1, 'WITHSCORES') or {})[2] or 0)
  if last == 0 and state.held_ids <= 2 * holds.FEW then
    for _, text in ipairs(redis.call('HVALS', holds.name(keys))) do
      last = math.max(last, (holds.parse(text)))
    end
  end
  return last > 0 and last or state.last_lapse
end

-- Finds the holds that have lapsed:
--   lapsed         their ids; none if none has lapsed, or no hold remains
--   hits, ids      those of the others, and by_lane both by lane
--   first          when the first of the others lapses; math.huge if there are none
--   order          the order of the others if all holds had to be read: there are few, there is no order, or somebody has
--                  removed the hash or the order; else nil
--   last_lapsed    when the last of the lapsed ones lapsed, if there are any
function holds.find_lapsed(keys, state, now_ms)
  if now_ms >= state.last_lapse then
    return find_nothing()
  end
  local count = holds.call_order(keys, state, 'ZCARD')
  if count ~= state.held_ids or count ~= redis.call('HLEN', holds.name(keys)) then
    return holds.read_all(keys, now_ms)
  end
  local found = { lapsed = {}, hits = state.held, by_lane = state.lane_holds }
  local lapsed = holds.call_order(keys, state, 'ZRANGE', '-inf', digits(now_ms), 'BYSCORE', 'WITHSCORES')
  weight.add(lapsed, 2)
  for i = 1, #lapsed, 2 do
    local id, hits, lane = string.match(lapsed[i], '^([^*/]*)%*?(%d*)/?(.*)$')
    hits = tonumber(hits) or 1
    found.lapsed[#found.lapsed + 1], found.hits = id, found.hits - hits
    found.by_lane = held.with(found.by_lane, lane ~= '' and lane or nil, -hits, -1)
  end
  local next_hold = holds.call_order(keys, state, 'ZRANGE', #found.lapsed, #found.lapsed, 'WITHSCORES')
  found.ids, found.first = count - #found.lapsed, tonumber(next_hold[2]) or math.huge
  found.last_lapsed = tonumber(lapsed[#lapsed] or 0)
  return found
end

-- Ends the holds that have lapsed. Their ids are not remembered: whoever asks about one has not heard of the approval,
-- and may be approved again. Returns them as far as they are known, which they need not be if no hold remains; nil if none
-- may have lapsed.
function holds.end_lapsed(keys, state, call)
  if not stored.has_holds(state) or call.now_ms < state.first_lapse then
    return nil
  end
  local found = holds.find_lapsed(keys, state, call.now_ms)
  local lapsed, last_lapsed = found.lapsed, found.last_lapsed
  if found.first == math.huge then
    last_lapsed = #lapsed > 0 and last_lapsed or holds.last_lapse(keys, state)
    redis.call('UNLINK', holds.name(keys), holds.order_name(keys))
    holders.end_all_holds(keys, state)
  elseif found.order then
    holds.begin_order(keys, state, found.order)
  elseif #lapsed > 0 then
    holds.call_order(keys, state, 'ZREMRANGEBYSCORE', '-inf', digits(call.now_ms))
  end
  chunks.call('HDEL', holds.name(keys), lapsed)
  holders.end_holds(keys, state, lapsed)
  if #lapsed > 0 or found.ids < state.held_ids then
    given_back.note(state, call)
    -- A lapse may be noticed late.
    state.released_at = last_lapsed > 0 and math.min(last_lapsed, call.now_ms) or call.now_ms
  end
  holds.keep(state, found)
  return lapsed
end

-- After the clock has gone back, each hold lasts at most its length from now on.
function holds.shorten(keys, state, call)
  if not stored.has_holds(state) then
    return
  end
  local all = weight.add(redis.call('HGETALL', holds.name(keys)), 2)
  state.last_lapse = 0
  for i = 1, #all, 2 do
    local lapses, millis, hits, lane = holds.parse(all[i + 1])
    if lapses > call.now_ms + millis then
      holds.write(keys, state, call, all[i], call.now_ms + millis, millis, hits, lane, hits)
    else
      state.last_lapse = math.max(state.last_lapse, lapses)
    end
  end
end

-- Gives a held approval another length and other hits, and renews the hold. A length or hits of nil stay as they are. A
-- hold that is longer than `longest` is not renewed, and only its hits change.
-- Returns the ms until it lapses; nil if the id is not held; false if there is nothing to change.
function holds.renew(keys, state, call, id, millis, hits, longest)
  local lapses, millis_before, hits_before, lane = holds.read(keys, state, id)
  if not hits_before then
    return nil
  end
  millis = millis or millis_before
  if millis <= longest then
    lapses = call.now_ms + millis
  elseif not hits then
    return false
  else
    millis = millis_before
  end
  local hits_after = hits or hits_before
  holds.write(keys, state, call, id, lapses, millis, hits_after, lane, hits_before)
  given_back.note_if_less(state, call, function()
    change_held(state, hits_after - hits_before, 0, lane)
    if hits then
      key_limits.amend(keys, state, id, hits, true)
    end
  end)
  return lapses - call.now_ms
end

return holds
