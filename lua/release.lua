-- Releases an approval that still counts, with all of its hits, and serves the queue. A request that waits, whose id its caller
-- has chosen, is withdrawn, as is one whose approval nobody has claimed.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 request id, 8 1 if nobody has got the approval, so that it counts in no limit, else 0
-- Reply 1, or 0: the id is unknown, was released before, was approved in a window that has ended, or its hold has lapsed

local approvals = require 'lib/approvals'
local calls = require 'lib/calls'
local change = require 'lib/change'
local known_requests = require 'lib/known-requests'
local named_requests = require 'lib/named-requests'
local past_requests = require 'lib/past-requests'
local unclaimed_approvals = require 'lib/unclaimed-approvals'

local function withdraw_unclaimed(keys, state, call, record)
  local ids = { record.requestId }
  approvals.release(keys, state, call, ids, true)
  unclaimed_approvals.end_released(state, record)
  past_requests.remember(keys, state, call, ids)
  named_requests.forget(keys, ids)
  known_requests.end_wait(state, record, 'withdrawn')
end

-- Returns how many there were.
local function release(keys, state, call, id, is_unused)
  local record = state.named > 0 and named_requests.find(keys, id)
  if record and record.is == named_requests.WAITING then
    known_requests.withdraw(keys, state, call, record, 'withdrawn')
    return 1
  elseif record and record.is == named_requests.GRANTED then
    withdraw_unclaimed(keys, state, call, record)
    return 1
  end
  local released = approvals.release(keys, state, call, { id }, is_unused)
  if released > 0 then
    past_requests.remember(keys, state, call, { id })
  end
  if record and released > 0 and not is_unused then
    named_requests.write(keys, state, call, named_requests.RELEASED, { record })
  elseif record and is_unused then
    named_requests.forget(keys, { id })
  end
  return released
end

local function run(KEYS, ARGV)
  return change.apply(KEYS, ARGV, 0, function(keys, state, call)
    return release(keys, state, call, ARGV[calls.FIRST_OWN], ARGV[calls.FIRST_OWN + 1] == '1')
  end)
end
