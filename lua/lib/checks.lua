-- Decides any checks.
--
-- A batch that is special says by a JSON text, each field left out where it says nothing:
--   ceilings                                       the greatest overrides that count, by the names of the overrides, with -1 for none
--   maxRequests, maxRequestsInQueue, windowMillis  overrides: of the maximum, of the queue's maximum, and of the window's length
--                                                  in ms, from the next window on
--   waiting                                        what the caller knows of its waiters for the key:
--     lowestTicket, requestId                        of the waiter with the lowest ticket
--     millisToWindowEnd                              below 0 if the window has ended
--     limits                                         the limits in force, or '' if it does not know them
--   maxHolds                                       with holds: the most that the key may have
--   maxGroups                                      with groups: the most that the key may have, see limits/group-limits
--   requests                                       what its checks ask for, see lib/requests: a list, or one for all of them

local approvals = require 'lib/approvals'
local chunks = require 'lib/chunks'
local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local given_back = require 'lib/given-back'
local group_limits = require 'limits/group-limits'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local instance = require 'lib/instance'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local kinds = require 'limits/kinds'
local named_requests = require 'lib/named-requests'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local lost_key = require 'lib/lost-key'
local own_ids = require 'limits/own-ids'
local past_requests = require 'lib/past-requests'
local pause = require 'lib/pause'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'
local verdicts = require 'lib/verdicts'

-- check.lua gets the kinds by this fragment, since an EVALSHA defines neither before they are needed.
local checks = { begin_limit = kinds.begin }

local NOTHING = {}

-- What checks have had before for these ids: request id -> reply.
local function find_decided(keys, call, ids)
  local decided, found = {}, requests.find_all(keys, nil, ids)
  for id, request in pairs(found) do
    decided[id] = request.state == requests.WAITING and tonumber(request.ticket) or nil
  end
  for id in pairs(approvals.find(keys, ids, found, call.now_ms)) do
    decided[id] = verdicts.APPROVED
  end
  return decided
end

-- Approves checks with one hit while there is room, from the first on. Returns the position of the first undecided
-- check.
local function approve(keys, state, call, batch, decided, replies)
  local i, own = 1, state.own
  local most = own:most_hits(state, call)
  while i <= batch.size and own.used < most do
    local ids = {}
    local room_left = math.min(most - own.used, chunks.SIZE)
    while i <= batch.size and #ids < room_left do
      local id = batch.ids[i]
      replies[i + verdicts.HEAD] = decided[id] or (call.is_over_full and verdicts.STORE_FULL) or verdicts.APPROVED
      if replies[i + verdicts.HEAD] == verdicts.APPROVED and not decided[id] then
        ids[#ids + 1] = id
      end
      i = i + 1
    end
    own:take_all(keys, state, call, ids)
  end
  return i
end

local function is_group_full(keys, state, call, list)
  return list and list.most and queue.count_in_list(keys, state, call, list.id, list.most) >= list.most
end

-- The reply to a check whose turn would come later than it can wait, else nil. `joining`: the checks that join before it. Where
-- a release can be expected, the check waits until its time is over.
local function reply_too_late(keys, state, call, joining, request)
  local longest_wait, list = request.maxWaitMillis, request.list
  if not longest_wait then
    return nil
  end
  local waiting = queue.count_waiting(keys, state, call)
  local before = dead_waiters.count_before(keys, state, state.tally, call.now_ms, list, waiting) + #joining
  local micros = room.micros_to_turn(keys, state, call, before, request.hits, list and list.id)
  if micros <= longest_wait * 1000 then
    return nil
  elseif longest_wait > 0 and given_back.is_expected(keys, state, call) then
    return nil
  end
  return verdicts.TURN_TOO_LATE - micros
end

-- The reply to a check that is not approved. `joining`: the checks that join the queue before it, and gets this one if it does.
local function deny_or_queue(keys, state, call, request, joining)
  local hits, list = request.hits, request.list
  local list_id, reply = list and list.id, nil
  if hits > 1 and key_limits.is_any_below(state, hits, list_id) then
    reply = verdicts.TOO_MANY_HITS
  elseif not request.canWait and key_limits.fit(state, hits, list_id) and not approvals.is_kept(keys, state, call, request) then
    reply = verdicts.KEY_FULL
  elseif not request.canWait then
    reply = (pause.is_on(state) or key_limits.is_group_paused(state, list_id)) and verdicts.PAUSED or verdicts.DENIED
    state.denied = state.denied + (call.is_sent_again and 0 or 1)
  else
    -- With a maximum of 0 no turn ever comes.
    local places = key_limits.is_any_closed(state, list_id) and 0 or state.queue_max
    reply = queue.count_waiting(keys, state, call) + #joining >= places and verdicts.QUEUE_FULL
      or is_group_full(keys, state, call, list) and verdicts.QUEUE_FULL_OF_GROUP
      or key_limits.is_full_for_group(state, list_id) and verdicts.KEY_FULL
      or reply_too_late(keys, state, call, joining, request)
      or request.noPlace and verdicts.NO_PLACE
      or call.is_over_full and verdicts.STORE_FULL
      or queue.next_ticket(keys, state, call)
    if reply > verdicts.APPROVED then
      request.ticket = entries.format_ticket(reply)
      joining[#joining + 1] = request
    end
  end
  if request.takesRest and (reply == verdicts.DENIED or reply == verdicts.TOO_MANY_HITS) then
    key_limits.take_rest(state, call, hits, list_id)
  end
  return reply
end

local function join(keys, state, call, joining)
  local first = joining[1]
  if not first then
    return
  end
  for _, request in ipairs(joining) do
    if request.owner then
      -- A settle must not take it for an earlier one with its id that was withdrawn. While its checks are denied, it is that.
      past_requests.forget(keys, request.requestId)
    end
  end
  local is_next = queue.count_waiting(keys, state, call) == 0 or serving.is_next(keys, state, call, first.list, first.hits)
  queue.join(keys, state, call, joining)
  state.has_joined = true
  state.serving = key_limits.fit(state, 1) and 1 or 0
  if is_next and state.serving == 1 and not room.is_closed(state) then
    serving.note_next(keys, state, call, first)
  end
  if first.list and first.list.kind == 'group' and first.list.headStartMillis then
    -- It may have come before the waiters of its group, and fit.
    serving.serve(keys, state, call)
  end
end

-- Whether a check would be the next to be approved. Groups that have joined before it in this call, and that their own limits
-- stop, are stopped before it passes them: so they gain nothing by that.
local function is_next(keys, state, call, list, hits)
  if state.groups and state.has_joined then
    state.has_joined = nil
    serving.serve(keys, state, call)
  end
  return serving.is_next(keys, state, call, list, hits)
end

-- The reply to a check that the key knows or approves, else nil.
local function answer_or_approve(keys, state, call, request)
  local hits, list = request.hits, request.list
  local reply = request.owner and named_requests.answer(keys, state, call, request)
  if reply == verdicts.WAIT_EXPIRED then
    -- The place that has ended may have been the head's.
    serving.serve(keys, state, call)
    state.dead_waiters = nil
  end
  if reply or not key_limits.fit(state, hits, list and list.id) or not is_next(keys, state, call, list, hits)
    or not approvals.is_kept(keys, state, call, request)
  then
    return reply
  elseif call.is_over_full then
    return verdicts.STORE_FULL
  end
  approvals.add(keys, state, call, { request })
  lists.approve_at_once(state, list, hits)
  if state.stopped_heads and not key_limits.fit(state, 1) then
    -- It has passed the heads that are stopped. Now they wait for any room, as after lib/serving.
    state.stopped_heads = nil
  end
  return verdicts.APPROVED
end

-- Decides the checks of a batch in their order. Those with nothing of their own are approved together and join together: each
-- alone would cost several commands. Returns the places that checks have taken over, by the numbers of the checks; nil if none has.
local function decide_all(keys, state, call, batch, asked, replies)
  local decided = call.is_sent_again and find_decided(keys, call, batch.ids) or NOTHING
  local are_alike = not asked.has_terms and #state.limits == 1 and not state.groups and own_ids.have_one_each(state)
  local first_left = are_alike and serving.is_next(keys, state, call) and approve(keys, state, call, batch, decided, replies) or 1
  local joining, one_hit, places = {}, { hits = 1 }, nil
  for i = first_left, batch.size do
    local id = batch.ids[i]
    local request = asked.requests and asked.requests[i] or one_hit
    request.requestId = id
    local reply = not request.owner and decided[id] or not are_alike and answer_or_approve(keys, state, call, request)
    replies[i + verdicts.HEAD] = reply or deny_or_queue(keys, state, call, request, joining)
    if request.place then
      places = places or {}
      places[tostring(i)] = request.place.list or {}
    end
    if not are_alike then
      join(keys, state, call, joining)
      joining = {}
    end
  end
  join(keys, state, call, joining)
  return places
end

-- Whether a check of the batch has a place in the queue, as one that is sent again may have from before.
local function has_ticket(batch, replies)
  for i = 1, batch.size do
    if replies[i + verdicts.HEAD] > verdicts.APPROVED then
      return true
    end
  end
  return false
end

local function ids_of(batch)
  local ids = {}
  for i = 1, batch.size do
    ids[i] = batch.arguments[batch.first_id + i - 1]
  end
  return ids
end

-- What the checks of a batch ask for, `requests`, and whether any of them has what most have not; nothing if the batch says nothing
-- of them: plain checks have no table before one of them needs it.
-- `said`: what the batch says.
local function read_requests(call, ids, said)
  if not said.requests then
    return NOTHING
  end
  local asked = {
    requests = requests.of_checks(call, ids, said.requests),
    can_wait = false, has_terms = false,
  }
  for _, request in ipairs(asked.requests) do
    asked.can_wait = asked.can_wait or request.canWait
    asked.has_terms = asked.has_terms or request.owner ~= nil or request.list ~= nil or request.hits > 1 or request.holdMillis ~= nil
  end
  return asked
end

-- The maximum, or what check.lua replies in its place. `has_place`: whether a check of the batch has a place in the queue.
-- `places`: those that its checks have taken over. `lapsed`: how many unclaimed approvals have. `groups`: from `room.used_of_groups`.
local function describe_limits(state, call, has_place, places, lapsed, groups)
  local own, declared = state.own, call.rules.own
  local is_by_rules = own.window == declared.window and kinds.is_same(own, declared)
    and not state.window_is_set and #state.limits == 1
  if is_by_rules and not has_place and lapsed == 0 and not places and not groups then
    return state.own.max
  end
  return cjson.encode({
    -- All limits instead of the maximum alone, so that a caller with a place can restore them if Redis loses the key.
    limits = limits_text.format(state), wakeNumber = has_place and state.wake or nil, at = has_place and call.now_ms or nil,
    unclaimed = lapsed > 0 and lapsed or nil, places = places, groups = groups,
  })
end

-- Decides a batch that check.lua has read, and returns its reply. `values`: of its key, from `key_names.read_values`.
function checks.decide(call, batch, values)
  local said = batch.special and cjson.decode(batch.special) or NOTHING
  local waiting = said.waiting
  batch.ids = ids_of(batch)
  local asked = read_requests(call, batch.ids, said)
  local keys = key_names.read(batch.names, batch.first_key)
  call.rules = batch.rules
  local state, idle = instance.open(keys, call, stored.of_values(keys.state, values))
  if not state and not idle and call.is_over_full then
    return redis.error_reply('OOM used memory is above maxmemory by more than a tenth')
  end
  if not state and not idle and waiting then
    state = lost_key.restore(keys, call, waiting.limits, waiting.millisToWindowEnd)
  end
  batch.begins_key = not state
  state = state or instance.new(keys, call, idle)
  if waiting and recovery.is_older_than_key(keys, state, waiting.lowestTicket) then
    local has_places = #replicas.of_caller(queue.read(keys, state, call), call) > 0
    -- The caller may not have heard yet of an approval after a recovery. Without one, another check of the request has it.
    local was_approved = recovery.may_have_ended(keys, state, call)
      and find_decided(keys, call, { waiting.requestId })[waiting.requestId] == verdicts.APPROVED
    if has_places or not was_approved then
      recovery.begin_after_loss(keys, state, call, not idle and not has_places)
    end
    lost_key.restore_overrides(state, waiting.limits)
  end
  if batch.special or state.limits_text ~= call.rules.text then
    in_force.configure(keys, state, call, said, batch.begins_key)
    group_limits.begin(keys, state, call)
  end
  call.max_groups = said.maxGroups
  state.expires = stored.idle_time(state)
  state.max_holds = said.maxHolds or state.max_holds
  serving.serve(keys, state, call)
  if asked.can_wait and state.ticket > 0 then
    -- Before the check joins the queue: joining renews the caller's lease, which would hide the silence.
    recovery.begin_if_redis_was_down(state, queue.read(keys, state, call), call)
  end
  -- Created with a place for one verdict, since most batches have one.
  local replies = { 0, state.own.max, 0, verdicts.DENIED }
  local places = decide_all(keys, state, call, batch, asked, replies)
  -- A hold that was just taken may be the first to lapse.
  replies[1] = room.micros_to(keys, state, call)
  replies[verdicts.HEAD] = room.used(state, call)
  local lapsed = holds.take_lapsed_unclaimed(state)
  local groups = state.groups and room.used_of_groups(state, call, requests.lists_of(asked.requests or NOTHING))
  instance.close(keys, state, call)
  replies[2] = describe_limits(state, call, asked.can_wait and has_ticket(batch, replies), places, lapsed, groups)
  return replies
end

return checks
