-- Claims the approvals that are kept for the callers of kept places, of several limiter keys, since these callers are about to
-- be told. From then on they count as was asked for: in the present windows, or with holds of their own, which begin now.
--
-- KEYS  per key: 1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 a JSON text: for each key, `requests`, its approvals, at most 1000, of each the `requestId` and the `number` of its check;
--       and, if its limits are not those in 3, `limits`
-- Reply per key a JSON text:
--         mayBeTold     for each approval whether its caller may be told; not if it has lapsed or was lost, or the request belongs to
--                       another check or was withdrawn, as a settle tells
--         microsToRoom  microseconds until there may be room again
--         limits        the limits in force
--         used          what counts of them: see `room.used`
--         groups        the same of the groups of the approvals: see `room.used_of_groups`
--       with `mayBeTold` alone if there is no such key. Or the error with which the key failed. The first key has a reply at least.
--       Keys after those that take long have none, and are left to the next call (lib/reads)

local holds = require 'lib/holds'
local instance = require 'lib/instance'
local key_claims = require 'lib/key-claims'
local limits_text = require 'lib/limits-text'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

-- Returns whether the caller may be told. `request`: nil if it is unknown, or Redis has lost the holds. `state`: nil if the key was idle for too long.
local function confirm_one(keys, state, call, request, owner)
  if not request or request.owner ~= owner or holds.is_lost(keys, request) then
    return false
  elseif state and request.state == requests.UNCLAIMED then
    holds.claim(keys, state, call, request, owner)
    return true
  end
  -- It is approved already if the call is sent again. Its hold may have lapsed since.
  return not requests.is_undecided(request) and request.state ~= requests.RELEASED
end

local function confirm(call, keys, claims, ids)
  local state = instance.open(keys, call, stored.read(keys.state))
  local found, may_be_told, lists_told = requests.find_all(keys, state, ids), {}, {}
  for i, claim in ipairs(claims) do
    local request = found[claim.requestId]
    may_be_told[i] = confirm_one(keys, state, call, request, claim.owner)
    lists_told[#lists_told + 1] = request and request.list or nil
  end
  if not state then
    return cjson.encode({ mayBeTold = may_be_told })
  end
  serving.serve(keys, state, call)
  instance.close(keys, state, call)
  return cjson.encode({
    mayBeTold = may_be_told, microsToRoom = room.micros_to(keys, state, call),
    limits = limits_text.format(state), used = room.used(state, call), groups = room.used_of_groups(state, call, lists_told),
  })
end

local function run(KEYS, ARGV)
  return key_claims.run(KEYS, ARGV, confirm)
end
