-- Withdraws waiters whose clients have disconnected, of several limiter keys. A waiter may have been approved
-- meanwhile: its approval is released, and the next waiter gets it. The replica's lease ends with its last place.
--
-- KEYS  per key: 1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 a JSON text: for each key, `requests`, at most 1000, of each the `requestId` and, if the caller of its check has chosen
--       that, the `number` of the check; and, if its limits are not those in 3, `limits`
-- Reply per key a JSON text: `gone`, how many were withdrawn or released, and `unclaimed`, how many unclaimed approvals have
--       lapsed since a reply told it; or the error with which the key failed. The first key has a reply at
--       least. Keys after those that take long have none, and are left to the next call (lib/reads)

local approvals = require 'lib/approvals'
local holds = require 'lib/holds'
local instance = require 'lib/instance'
local key_claims = require 'lib/key-claims'
local queue = require 'queue/queue'
local past_requests = require 'lib/past-requests'
local requests = require 'lib/requests'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

-- Whether a check may withdraw a request. It has an owner if its caller has chosen the id, and then the request must still
-- belong to it.
local function may_withdraw(request, owner)
  return owner == nil or (request ~= nil and request.owner == owner and request.state ~= requests.RELEASED)
end

-- Returns the requests among these that wait, and all ids: a waiter may also have an approval, whose hold has lapsed, but which a
-- token bucket still counts. `found`: all requests, by the ids. `named`: gets the ids that callers have chosen.
local function sort_out(claims, found, named)
  local waiting, ids, seen = {}, {}, {}
  for _, claim in ipairs(claims) do
    local id = claim.requestId
    local request = found[id]
    if not seen[id] and may_withdraw(request, claim.owner) then
      seen[id], ids[#ids + 1] = true, id
      waiting[#waiting + 1] = request and request.state == requests.WAITING and request or nil
      named[#named + 1] = claim.owner and id or nil
    end
  end
  return waiting, ids
end

local function withdraw(call, keys, claims, all_ids)
  local state = instance.open(keys, call, stored.read(keys.state))
  local found, named = requests.find_all(keys, state, all_ids), {}
  local waiting, ids = sort_out(claims, found, named)
  if not state then
    requests.forget_chosen(keys, named)
    -- If Redis has lost the state alone, the places still exist.
    requests.forget(keys, requests.ids_of(waiting))
    return cjson.encode({ gone = #waiting, unclaimed = 0 })
  end
  for _, id in ipairs(ids) do
    if found[id] and found[id].state == requests.UNCLAIMED then
      state.lapsed_unclaimed = state.lapsed_unclaimed + 1
    end
  end
  local released = approvals.release(keys, state, call, ids, true, found)
  queue.withdraw(keys, state, call, waiting)
  local gone = released + #waiting
  if gone > 0 then
    past_requests.remember(keys, state, call, ids)
  end
  requests.forget_chosen(keys, named)
  serving.serve(keys, state, call)
  local lapsed = holds.take_lapsed_unclaimed(state)
  instance.close(keys, state, call)
  return cjson.encode({ gone = gone, unclaimed = lapsed })
end

local function run(KEYS, ARGV)
  return key_claims.run(KEYS, ARGV, withdraw)
end
