-- The approvals that count as held: in every window until they are released, or until they lapse. Their records
-- (lib/requests) are in one of two states:
--   held       for as long as the check has said
--   unclaimed  kept for the caller of a kept place, since a script can't know whether the caller is still there. A check that
--              claims the approval makes it what was asked for: held, or one that counts in the present windows. If no check
--              claims it in time, it lapses, and its request is unknown from then on
-- Held ids are in no set of approvals until their holds end, unless a limit keeps what is released.
--
-- A sorted set, `lapses`, has the ids by the time when they lapse, in ms since 1970. The state sums them up:
--   held, held_ids, lane_holds        their hits and their number, which are among what is used of each limit: limits/held
--   first_lapse, last_lapse           no hold lapses before or after these times; 0 if there is none. A renewal leaves them, unless
--                                     it is of the only hold
--   max_holds                         how many the key may have, by the caller that asked for a hold last; 0 if unknown
--   unclaimed, unclaimed_held         how many are unclaimed: that will not be held once they are claimed, so that they take none
--                                     of the holds that a key may have, and that will
--   lapsed_unclaimed                  how many unclaimed ones have lapsed since a reply told how many

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local given_back = require 'lib/given-back'
local held = require 'limits/held'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local lists = require 'queue/lists'
local reads = require 'lib/reads'
local requests = require 'lib/requests'
local stored = require 'lib/stored'

local holds = {}

local function lapses_name(keys)
  return keys.state .. ':lapses'
end

holds.built_name = lapses_name

-- How long an approval counts as held without another call.
local function length_of(request)
  return request.state == requests.UNCLAIMED and request.keepMillis or request.renewedMillis or request.holdMillis
end

function holds.hits_of(request)
  return request.took or request.hits
end

-- When approvals lapse, by their ids: in ms since 1970. `found`: of the requests, those that count as held.
function holds.lapses_of(keys, found, now_ms)
  local ids, lapses = {}, {}
  for id, request in pairs(found) do
    ids[#ids + 1] = requests.counts_as_held(request) and id or nil
  end
  for i, score in ipairs(chunks.list('ZMSCORE', lapses_name(keys), ids)) do
    -- The clock may have gone back.
    lapses[ids[i]] = score and math.min(tonumber(score), now_ms + length_of(found[ids[i]])) or nil
  end
  return lapses
end

-- An approval lapses at this time, and others when they did.
local function note_lapse_at(state, lapses)
  state.first_lapse = stored.has_holds(state) and math.min(state.first_lapse, lapses) or lapses
  state.last_lapse = math.max(state.last_lapse, lapses)
end

local function write_lapse(keys, state, call, id, lapses)
  redis.call('ZADD', lapses_name(keys), digits(lapses), id)
  note_lapse_at(state, lapses)
  state.set_at = call.now_ms
end

-- An approval that is held lapses at another time than before.
local function move_lapse(keys, state, call, id, lapses)
  write_lapse(keys, state, call, id, lapses)
  if state.held_ids == 1 then
    state.first_lapse, state.last_lapse = lapses, lapses
  end
end

-- This number of approvals with these hits more is held in a list, or without one.
local function note_held(state, hits, ids, list)
  state.held, state.held_ids = state.held + hits, state.held_ids + ids
  local group = state.groups and list and state.groups:of(list)
  -- In a key without limits of groups, which only pauses some, a group need not be known for what it holds.
  if group and #group.limits > 0 then
    group.held, group.held_ids = group.held + hits, group.held_ids + ids
  elseif list and lists.kind_of(list) == 'lane' then
    state.lane_holds = held.with(state.lane_holds, list, hits, ids)
  end
end

local function change_held(state, hits, ids, list)
  key_limits.hold(state, hits, ids, list)
  note_held(state, hits, ids, list)
end

-- One more or one less is unclaimed, if the request is.
local function count_unclaimed(state, request, added)
  if request.state == requests.UNCLAIMED then
    local name = request.holdMillis and 'unclaimed_held' or 'unclaimed'
    state[name] = math.max(0, state[name] + added)
  end
end

function holds.free(state)
  return state.max_holds == 0 and math.huge or state.max_holds - state.held_ids + state.unclaimed
end

-- Holds an approval, unless it is held already. `request`: its state says for how long.
function holds.add(keys, state, call, request)
  if not stored.has_holds(state) then
    key_names.remove_leftover(lapses_name(keys))
  end
  local id, list, lapses = request.requestId, lists.id_of(request.list), call.now_ms + length_of(request)
  if redis.call('ZADD', lapses_name(keys), 'NX', digits(lapses), id) == 0 then
    return
  end
  note_lapse_at(state, lapses)
  state.set_at = call.now_ms
  request.since = requests.has_label(request) and call.now_ms or nil
  requests.write(keys, state, { request })
  change_held(state, request.hits, 1, list)
  key_limits.take(keys, state, call, id, request.hits, true, list)
  count_unclaimed(state, request, 1)
end

-- Counts an approval as held in a state that is only looked at.
function holds.count(state, call, request)
  note_held(state, request.hits, 1, lists.id_of(request.list))
  note_lapse_at(state, call.now_ms + length_of(request))
  count_unclaimed(state, request, 1)
end

-- From now on, these approvals are held. `left`: from `find_lapsed`.
local function keep(state, left)
  local hits, ids = left.hits - state.held, left.ids - state.held_ids
  local function change(list, its_hits, its_ids)
    change_held(state, its_hits, its_ids, list)
    hits, ids = hits - its_hits, ids - its_ids
  end
  for lane in pairs(held.lanes_of_both(state.lane_holds, left.by_lane)) do
    local before, after = held.of_lane(state.lane_holds, lane), held.of_lane(left.by_lane, lane)
    change(lane, after.hits - before.hits, after.ids - before.ids)
  end
  for group, changed in pairs(left.by_group) do
    change(group, changed.hits, changed.ids)
  end
  change_held(state, hits, ids)
  state.first_lapse, state.last_lapse = left.first, left.first > 0 and state.last_lapse or 0
end

local NOTHING = { hits = 0, ids = 0, by_lane = {}, by_group = {}, first = 0 }

-- Whether somebody has removed the time when an approval lapses: nothing counts it then.
function holds.is_lost(keys, request)
  return requests.counts_as_held(request) and not redis.call('ZSCORE', lapses_name(keys), request.requestId)
end

-- An approval counts as held no longer. What becomes of its record is up to the caller. Returns whether it did.
local function stop(keys, state, request)
  if redis.call('ZREM', lapses_name(keys), request.requestId) == 0 then
    return false
  end
  count_unclaimed(state, request, -1)
  change_held(state, -holds.hits_of(request), -1, lists.id_of(request.list))
  if state.held_ids <= 0 then
    keep(state, NOTHING)
  end
  return true
end

-- Releases an approval that counts as held. It is forgotten. Returns whether it counted.
function holds.release(keys, state, request)
  requests.forget(keys, { request.requestId })
  return stop(keys, state, request)
end

-- A check claims an unclaimed approval. It has counted as a held one, so that nothing exceeds a maximum. `owner`: of the check.
function holds.claim(keys, state, call, request, owner)
  local id = request.requestId
  request.owner = owner
  if request.holdMillis then
    count_unclaimed(state, request, -1)
    request.state = requests.HELD
    move_lapse(keys, state, call, id, call.now_ms + request.holdMillis)
    requests.write(keys, state, { request })
    return
  end
  -- First, since a limit gives back no more than a vendor's report allows.
  key_limits.take_from_hold(keys, state, call, id, request.hits, lists.id_of(request.list))
  stop(keys, state, request)
  state.has_claimed = true
  requests.remember(keys, state, call, request, requests.APPROVED)
end

-- Takes a request into what is left: of `find_lapsed`.
local function add_to(left, request, sign)
  local hits = sign * holds.hits_of(request)
  left.hits, left.ids = left.hits + hits, left.ids + sign
  left.by_lane = held.with(left.by_lane, lists.lane_of(request.list), hits, sign)
  if request.list and request.list.kind == 'group' then
    local changed = left.by_group[request.list.id] or { hits = 0, ids = 0 }
    left.by_group[request.list.id] = { hits = changed.hits + hits, ids = changed.ids + sign }
  end
end

-- Finds the approvals that have lapsed:
--   lapsed               their requests
--   hits, ids, by_lane   those of the others, in all and by lane
--   by_group             how many more are held in each group, by its id
--   first                no other one lapses before; 0 if there are none
--   last_lapsed          when the last of the lapsed ones lapsed
local function find_lapsed(keys, state, now_ms)
  local name, ids = lapses_name(keys), {}
  local due = reads.add(redis.call('ZRANGE', name, '-inf', digits(now_ms), 'BYSCORE', 'WITHSCORES'), 2)
  for i = 1, #due, 2 do
    ids[#ids + 1] = due[i]
  end
  local next_one = redis.call('ZRANGE', name, #ids, #ids, 'WITHSCORES')
  local left = { hits = state.held, ids = state.held_ids, by_lane = state.lane_holds, by_group = {}, lapsed = {} }
  left.first, left.last_lapsed = tonumber(next_one[2] or 0), tonumber(due[#due] or now_ms)
  local found = requests.find_all(keys, nil, ids)
  for _, id in ipairs(ids) do
    local request = found[id]
    if request and requests.counts_as_held(request) then
      left.lapsed[#left.lapsed + 1] = request
      add_to(left, request, -1)
    end
  end
  return left
end

-- Somebody has removed some of the records or of the lapses: what has only one of the two counts no longer. A call that only
-- looks, `call` is nil then, writes nothing.
local function recount(keys, state, call)
  local lapses = reads.add(redis.call('ZRANGE', lapses_name(keys), 0, -1, 'WITHSCORES'), 2)
  local left, others, gone = { hits = 0, ids = 0, by_lane = {}, by_group = {}, first = 0 }, requests.read_all(keys), {}
  state.unclaimed, state.unclaimed_held = 0, 0
  for i = 1, #lapses, 2 do
    local id = lapses[i]
    local request = others[id]
    if request and requests.counts_as_held(request) then
      left.first = left.first > 0 and left.first or tonumber(lapses[i + 1])
      add_to(left, request, 1)
      count_unclaimed(state, request, 1)
      others[id] = nil
    else
      gone[#gone + 1] = id
    end
  end
  if state.groups then
    state.groups:subtract_held(left.by_group)
  end
  keep(state, left)
  if call then
    local left_over = {}
    for id, request in pairs(others) do
      left_over[#left_over + 1] = requests.counts_as_held(request) and id or nil
    end
    chunks.call('ZREM', lapses_name(keys), gone)
    requests.forget(keys, left_over)
    given_back.note(state, call)
  end
end

-- Nobody has got these approvals, which were unclaimed, so that they count in no limit.
local function give_back_unclaimed(keys, state, lapsed)
  for _, request in ipairs(lapsed) do
    if request.state == requests.UNCLAIMED then
      key_limits.give_back(keys, state, request.requestId, lists.id_of(request.list), true, true)
      count_unclaimed(state, request, -1)
    end
  end
end

local function forget_lapsed(keys, state, call, lapsed)
  local gone = {}
  for _, request in ipairs(lapsed) do
    if request.state == requests.UNCLAIMED then
      state.lapsed_unclaimed = state.lapsed_unclaimed + 1
    end
    if request.state == requests.HELD and (request.owner or requests.has_limited_group(state, request)) then
      -- A limit that took the hold once may still count it.
      requests.remember(keys, state, call, request, request.owner and requests.LAPSED or requests.APPROVED)
    else
      gone[#gone + 1] = request.requestId
    end
  end
  requests.forget(keys, gone)
end

-- Ends the holds that have lapsed. Their ids are not remembered, unless callers have chosen them: whoever asks about one has
-- not heard of the approval, and may be approved again. A call that only looks, `call` is nil then, leaves them out of its state.
function holds.end_lapsed(keys, state, now_ms, call)
  if not stored.has_holds(state) then
    return
  elseif redis.call('HLEN', keys.records) < state.held_ids or redis.call('ZCARD', lapses_name(keys)) ~= state.held_ids then
    recount(keys, state, call)
  end
  if not stored.has_holds(state) or now_ms < state.first_lapse then
    return
  end
  local left = find_lapsed(keys, state, now_ms)
  keep(state, left)
  give_back_unclaimed(keys, state, left.lapsed)
  if state.groups then
    state.groups:begin_idle()
  end
  if call then
    redis.call('ZREMRANGEBYSCORE', lapses_name(keys), '-inf', digits(now_ms))
    if #left.lapsed > 0 then
      given_back.note(state, call)
      -- A lapse may be noticed late.
      state.released_at = math.min(left.last_lapsed, call.now_ms)
    end
    forget_lapsed(keys, state, call, left.lapsed)
  end
end

-- How many unclaimed ones have lapsed. The reply of the call tells it.
function holds.take_lapsed_unclaimed(state)
  local lapsed = state.lapsed_unclaimed
  state.lapsed_unclaimed = 0
  return lapsed
end

-- After the clock has gone back, each hold lasts at most its length from now on.
function holds.shorten(keys, state, call)
  if not stored.has_holds(state) then
    return
  end
  local found = requests.find_all(keys, nil, reads.add(redis.call('ZRANGE', lapses_name(keys), 0, -1), 1))
  state.last_lapse = 0
  for id, lapses in pairs(holds.lapses_of(keys, found, call.now_ms)) do
    write_lapse(keys, state, call, id, lapses)
  end
end

-- Gives a held approval another length and other hits, and renews the hold. A length or hits of nil stay as they are. A
-- hold that is longer than `longest` is not renewed, and only its hits change. Returns the ms until it lapses; false if there
-- is nothing to change.
function holds.renew(keys, state, call, request, millis, hits, longest)
  local id, hits_before, length_before = request.requestId, holds.hits_of(request), length_of(request)
  millis = millis or length_before
  local lapses = call.now_ms + millis
  if millis <= longest then
    request.renewedMillis = millis ~= request.holdMillis and millis or nil
    move_lapse(keys, state, call, id, lapses)
  elseif not hits then
    return false
  else
    lapses = holds.lapses_of(keys, { [id] = request }, math.huge)[id]
  end
  if hits then
    request.took = hits ~= request.hits and hits or nil
    given_back.note_if_less(state, call, function()
      local list = lists.id_of(request.list)
      change_held(state, hits - hits_before, 0, list)
      key_limits.amend(keys, state, id, list, hits, true)
    end)
  end
  if holds.hits_of(request) ~= hits_before or length_of(request) ~= length_before then
    requests.write(keys, state, { request })
  end
  return lapses - call.now_ms
end

return holds
