-- What a check gets whose caller has chosen its request id, if the request is known: the answer that it has already, or the
-- place in which it waits.

local holders = require 'lib/holders'
local holds = require 'lib/holds'
local lists = require 'queue/lists'
local named_requests = require 'lib/named-requests'
local past_requests = require 'lib/past-requests'
local queue = require 'queue/queue'
local unclaimed_approvals = require 'lib/unclaimed-approvals'
local verdicts = require 'lib/verdicts'

local known_requests = {}

-- Ids of which a version without records has approvals, or whose records are lost.
local function is_approved_without_record(keys, state, id)
  return redis.call('SMISMEMBER', keys.requests, id)[1] == 1 or holds.read(keys, state, id) ~= nil
end

-- Ends the wait of a check that another has taken over, or that a release has withdrawn: a wake tells its replica.
function known_requests.end_wait(state, record, why)
  state.ended = state.ended or {}
  state.ended[#state.ended + 1] = named_requests.claim(record.requestId, record.owner) .. '!' .. why
end

-- Withdraws a request that waits.
function known_requests.withdraw(keys, state, call, record, why)
  queue.withdraw(keys, state, call, { record.requestId }, record.replica_id)
  past_requests.remember(keys, state, call, { record.requestId })
  known_requests.end_wait(state, record, why)
end

-- Whether the longest wait of a request is over. While its place is kept, that begins with its ticket.
local function has_waited_too_long(call, check, record)
  return check.keepMillis and check.maxWaitMillis and call.now_ms - math.floor(record.ticket / 1000) >= check.maxWaitMillis
end

local function take_place(keys, state, call, check, record)
  -- The same owner: the call is sent again.
  if record.owner ~= check.owner then
    if not check.canWait or check.maxWaitMillis == 0 or has_waited_too_long(call, check, record) then
      known_requests.withdraw(keys, state, call, record, 'taken_over')
      return verdicts.WAIT_EXPIRED
    elseif check.noPlace then
      return verdicts.NO_PLACE
    end
    known_requests.end_wait(state, record, 'taken_over')
    queue.take_over(keys, state, call, record, check)
  end
  check.place = lists.describe_place(keys, record.place)
  return record.ticket
end

-- Whether an approval was released, or its hold has lapsed. `record`: of its request.
local function is_over(keys, state, record)
  return record.is == named_requests.RELEASED
    or (record.is == named_requests.APPROVED and record.holdMillis and not holds.read(keys, state, record.requestId))
end

-- A check claims the approval that is kept for its request.
local function claim(keys, state, call, check, record)
  if record.owner ~= check.owner then
    known_requests.end_wait(state, record, 'taken_over')
  end
  unclaimed_approvals.claim(keys, state, call, record, check.owner)
  return verdicts.APPROVED
end

-- Whether another check has the place or the approval of a request. A call that is sent again may have run before: then the
-- other check has taken the request over since. If it has not run, the caller of its newest check asks again.
local function was_taken_over(call, check, record)
  local is_undecided = record.is == named_requests.WAITING or record.is == named_requests.GRANTED
  return call.is_sent_again and is_undecided and record.owner ~= check.owner
end

-- The verdict on a check, or the ticket of its place; nil if its request is new. `check`: requestId, hits, holdMillis, holder,
-- keepMillis, owner, maxWaitMillis, canWait and noPlace. It gets `place`, the list of a place that it has taken over.
function known_requests.answer(keys, state, call, check)
  local record = named_requests.find(keys, check.requestId)
  if record and unclaimed_approvals.is_lost(keys, state, record) then
    unclaimed_approvals.forget_lost(keys, state, record)
    return nil
  end
  if not record and is_approved_without_record(keys, state, check.requestId) then
    record = {
      requestId = check.requestId, is = named_requests.APPROVED, hits = check.hits, holdMillis = check.holdMillis,
      holder = check.holder,
    }
  elseif not record then
    return nil
  elseif record.holdMillis then
    record.holder = holders.of(keys, state, check.requestId, record.is == named_requests.WAITING)
  end
  if was_taken_over(call, check, record) then
    return verdicts.TAKEN_OVER
  elseif record.hits ~= check.hits then
    return verdicts.OTHER_HITS
  elseif record.holdMillis ~= check.holdMillis then
    return verdicts.OTHER_HOLD
  elseif is_over(keys, state, record) then
    return verdicts.ID_USED
  elseif record.holder ~= check.holder then
    return verdicts.OTHER_HOLDER
  elseif record.is == named_requests.WAITING then
    return take_place(keys, state, call, check, record)
  elseif record.is == named_requests.GRANTED then
    return claim(keys, state, call, check, record)
  end
  if record.owner ~= check.owner then
    check.owner = named_requests.no_check(call)
  end
  named_requests.write(keys, state, call, named_requests.APPROVED, { check })
  return verdicts.APPROVED
end

-- A request that was not known gets a place: a settle must not take it for an earlier one with its id that was withdrawn. While
-- its checks are denied, it is the earlier one.
function known_requests.begin(keys, id)
  past_requests.forget(keys, id)
end

return known_requests
