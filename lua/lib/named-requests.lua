-- What a check gets whose caller has chosen its request id, if the request is known: the answer that it has already, or the
-- place in which it waits.

local holds = require 'lib/holds'
local past_requests = require 'lib/past-requests'
local queue = require 'queue/queue'
local requests = require 'lib/requests'
local verdicts = require 'lib/verdicts'

local named_requests = {}

-- Ends the wait of a check that another has taken over, or that a release has withdrawn: a wake tells its replica.
function named_requests.end_wait(state, request, why)
  state.ended = state.ended or {}
  state.ended[#state.ended + 1] = requests.claim(request.requestId, request.owner) .. '!' .. why
end

function named_requests.withdraw(keys, state, call, request, why)
  queue.withdraw(keys, state, call, { request })
  past_requests.remember(keys, state, call, { request.requestId })
  named_requests.end_wait(state, request, why)
end

-- Whether the longest wait of a request is over. While its place is kept, that begins with its ticket.
local function has_waited_too_long(call, check, request)
  return check.keepMillis and check.maxWaitMillis
    and call.now_ms - math.floor(tonumber(request.ticket) / 1000) >= check.maxWaitMillis
end

local function take_place(keys, state, call, check, request)
  -- The same owner: the call is sent again.
  if request.owner ~= check.owner then
    if not check.canWait or check.maxWaitMillis == 0 or has_waited_too_long(call, check, request) then
      named_requests.withdraw(keys, state, call, request, 'taken_over')
      return verdicts.WAIT_EXPIRED
    elseif check.noPlace then
      return verdicts.NO_PLACE
    end
    named_requests.end_wait(state, request, 'taken_over')
    queue.take_over(keys, state, call, request, check)
  end
  check.place = request
  return tonumber(request.ticket)
end

local function claim(keys, state, call, check, request)
  if request.owner ~= check.owner then
    named_requests.end_wait(state, request, 'taken_over')
  end
  holds.claim(keys, state, call, request, check.owner)
  return verdicts.APPROVED
end

-- Several checks are told of an approval: none of them gives it back, since the caller may use it.
local function tell_again(keys, state, call, check, request)
  if request.owner ~= check.owner then
    -- No check. The caller may have the answer to one that was sent after this one, if a frozen replica sends this one late.
    request.owner = call.replica .. '#0'
  end
  if request.state == requests.HELD then
    requests.write(keys, state, { request })
  else
    requests.remember(keys, state, call, request, requests.APPROVED)
  end
  return verdicts.APPROVED
end

-- Whether another check has the place or the approval of a request. A call that is sent again may have run before: then the
-- other check has taken the request over since. If it has not run, the caller of its newest check asks again.
local function was_taken_over(call, check, request)
  return call.is_sent_again and requests.is_undecided(request) and request.owner ~= check.owner
end

-- The request with an id, as far as there is a record, and the other names in Redis agree with it.
local function find(keys, state, call, id)
  local request = requests.find(keys, state, id)
  local has_no_place = request and request.state == requests.WAITING and queue.read(keys, state, call).places == 0
  return not has_no_place and request or nil
end

-- The request of an approval whose record somebody has removed; nil if there is none.
local function find_without_record(keys, check)
  if redis.call('SMISMEMBER', keys.requests, check.requestId)[1] == 1 then
    local request = { requestId = check.requestId, state = requests.APPROVED, hits = check.hits, holdMillis = check.holdMillis }
    for _, label in ipairs(requests.LABELS) do
      request[label] = check[label]
    end
    return request
  end
end

-- The verdict on a check whose request has another label; nil if all are the same.
local function other_label(check, request)
  for _, label in ipairs(requests.LABELS) do
    if request[label] ~= check[label] then
      return verdicts['OTHER_' .. string.upper(label)]
    end
  end
end

-- The verdict on a check, or the ticket of its place; nil if its request is new. `check`: requestId, hits, holdMillis, labels,
-- keepMillis, owner, maxWaitMillis, canWait and noPlace. It gets `place`, the request whose place it has.
function named_requests.answer(keys, state, call, check)
  local request = find(keys, state, call, check.requestId) or find_without_record(keys, check)
  if not request then
    return nil
  elseif was_taken_over(call, check, request) then
    return verdicts.TAKEN_OVER
  elseif request.hits ~= check.hits then
    return verdicts.OTHER_HITS
  elseif request.holdMillis ~= check.holdMillis then
    return verdicts.OTHER_HOLD
  elseif request.state == requests.RELEASED or request.state == requests.LAPSED then
    return verdicts.ID_USED
  end
  local conflict = other_label(check, request)
  if conflict then
    return conflict
  elseif request.state == requests.WAITING then
    return take_place(keys, state, call, check, request)
  elseif request.state == requests.UNCLAIMED then
    return claim(keys, state, call, check, request)
  end
  return tell_again(keys, state, call, check, request)
end

return named_requests
