-- Releases an approval that still counts, with all of its hits, and serves the queue. A request that waits, whose id its caller
-- has chosen, is withdrawn, as is one whose approval nobody has claimed.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 request id, 8 1 if nobody has got the approval, so that it counts in no limit, else 0
-- Reply 1, or 0: the id is unknown, was released before, was approved in a window that has ended, or its hold has lapsed

local approvals = require 'lib/approvals'
local calls = require 'lib/calls'
local instance = require 'lib/instance'
local named_requests = require 'lib/named-requests'
local past_requests = require 'lib/past-requests'
local requests = require 'lib/requests'

local function keeps_released(limits)
  for _, limit in ipairs(limits) do
    if limit.keeps then
      return true
    end
  end
  return false
end

local function release(keys, state, call, id, is_unused)
  local found = requests.has_any(state) and requests.find_all(keys, state, { id }) or {}
  local request = found[id]
  if request and request.owner and request.state == requests.WAITING then
    named_requests.withdraw(keys, state, call, request, 'withdrawn')
    return 1
  end
  local is_unclaimed = request ~= nil and request.state == requests.UNCLAIMED
  local released = approvals.release(keys, state, call, { id }, is_unused or is_unclaimed, found)
  if released > 0 then
    past_requests.remember(keys, state, call, { id })
  end
  if is_unclaimed and released > 0 then
    named_requests.end_wait(state, request, 'withdrawn')
  elseif request and request.owner and is_unused then
    requests.forget_chosen(keys, { id })
  elseif request and request.owner and released > 0 then
    requests.remember(keys, state, call, request, requests.RELEASED)
  elseif request and released > 0 and request.state ~= requests.WAITING then
    -- A limit of its group that keeps what is released may still count it, and its hits may be corrected.
    if requests.has_limited_group(state, request) and keeps_released(state.of_groups) then
      requests.remember(keys, state, call, request, requests.APPROVED)
    else
      requests.forget(keys, { id })
    end
  end
  return released
end

local function run(KEYS, ARGV)
  return instance.change(KEYS, ARGV, 0, function(keys, state, call)
    return release(keys, state, call, ARGV[calls.FIRST_OWN], ARGV[calls.FIRST_OWN + 1] == '1')
  end)
end
