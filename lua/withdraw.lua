-- Withdraws waiters whose clients have disconnected, of several limiter keys. A waiter may have been approved
-- meanwhile: its approval is released, and the next waiter gets it. The replica's lease ends with its last place.
--
-- KEYS  per key: 1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 with a space between two, what each key has: the number of its request ids, at most 1000, and, if its
--       limits are not those in 3, `=` and its limits
--       then the request ids of all keys; after an id that the caller of a check has chosen, `#<number>` of the check
-- Reply per key a JSON text: `gone`, how many were withdrawn or released, and `unclaimed`, how many unclaimed approvals have
--       lapsed since a reply told it; or the error with which the key failed. The first key has a reply at
--       least. Keys after those that take long have none, and are left to the next call (lib/weight)

local approvals = require 'lib/approvals'
local chunks = require 'lib/chunks'
local instance = require 'lib/instance'
local key_claims = require 'lib/key-claims'
local named_requests = require 'lib/named-requests'
local queue = require 'queue/queue'
local past_requests = require 'lib/past-requests'
local serving = require 'lib/serving'
local stored = require 'lib/stored'
local unclaimed_approvals = require 'lib/unclaimed-approvals'

-- Returns the ids among these that still belong to the checks that withdraw them, those of them that callers have chosen, and
-- the records of the latter.
local function ids_of_claims(call, keys, claims)
  if not string.find(table.concat(claims, ' '), '#', 1, true) then
    return claims, {}, {}
  end
  local ids, named, asked, owners = {}, {}, {}, {}
  for _, claim in ipairs(claims) do
    local id, owner = key_claims.parse(call, claim)
    if not owner then
      ids[#ids + 1] = id
    else
      asked[#asked + 1], owners[#owners + 1] = id, owner
    end
  end
  local records = named_requests.find_all(keys, asked)
  for i, id in ipairs(asked) do
    local record = records[id]
    if record and record.owner == owners[i] and record.is ~= named_requests.RELEASED then
      ids[#ids + 1], named[#named + 1] = id, id
    end
  end
  return ids, named, records
end

-- Withdraws waiters, by the ids under which their places count. Returns how many of them waited.
local function leave_queue(call, keys, state, ids, records)
  local by_replica, gone = {}, 0
  for _, id in ipairs(ids) do
    local replica_id = records[id] and records[id].replica_id or call.replica
    by_replica[replica_id] = by_replica[replica_id] or {}
    table.insert(by_replica[replica_id], id)
  end
  for replica_id, of_replica in pairs(by_replica) do
    gone = gone + queue.withdraw(keys, state, call, of_replica, replica_id)
  end
  return gone
end

-- Nobody has claimed approvals among these in time.
local function end_unclaimed(keys, state, named)
  for _, record in ipairs(named_requests.find_granted(keys, state, named)) do
    unclaimed_approvals.end_released(state, record)
    unclaimed_approvals.note_lapse(state)
  end
end

local function withdraw(call, keys, claims)
  local ids, named, records = ids_of_claims(call, keys, claims)
  local state = instance.open(keys, call, stored.read(keys.state))
  if not state then
    named_requests.forget(keys, named)
    -- If Redis has lost the state alone, the places still exist.
    return cjson.encode({ gone = chunks.call('HDEL', keys.waiting, ids), unclaimed = 0 })
  end
  local released = approvals.release(keys, state, call, ids, true)
  end_unclaimed(keys, state, named)
  local gone = released + leave_queue(call, keys, state, ids, records)
  if gone > 0 then
    past_requests.remember(keys, state, call, ids)
  end
  named_requests.forget(keys, named)
  serving.serve(keys, state, call)
  local lapsed = unclaimed_approvals.take_lapsed(state)
  instance.close(keys, state, call)
  return cjson.encode({ gone = gone, unclaimed = lapsed })
end

local function run(KEYS, ARGV)
  return key_claims.run(KEYS, ARGV, withdraw)
end
