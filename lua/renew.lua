-- Renews the leases of a replica for several keys, and does nothing else. It leaves a lease as it is if a settle has
-- to look at the key first, because the key may differ from what the replica knows: Redis has lost the key or a wake, the
-- replica or Redis was down, or Redis's clock has gone back. If somebody has removed another name of the queue, the next call
-- that would approve anybody finds that.
--
-- KEYS  per key: 1 replicas, 2 state
-- ARGV  1 to 6 as every call has them: 1 replica id, whose leases are renewed, 2 lease of a waiting replica in
--       ms; 3 to 6 do not matter here
--       7 a JSON text: for each key, `places`, how many places the replica has in the queue, `keepsAny` if it keeps any of them for
--       their callers, and `wakeNumber`, the number of the last wake, as far as it knows; left out if it knows none
-- Reply the numbers of the keys whose leases are not renewed, in their order, from 1 on

local calls = require 'lib/calls'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local stored = require 'lib/stored'

local NAMES_PER_KEY = 2

-- The places of the caller, by the ids under which they count. `keeps_any`: whether there may be several ids.
local function read_places(call, name, keeps_any)
  if not keeps_any then
    return { [call.replica] = replicas.parse(call.replica, redis.call('HMGET', name, call.replica)[1]) }
  end
  local found, values = {}, redis.call('HGETALL', name)
  for i = 1, #values, 2 do
    if replicas.split_id(values[i]) == call.replica then
      found[values[i]] = replicas.parse(values[i], values[i + 1])
    end
  end
  return found
end

-- Whether these are as many as the caller knows of, and their leases may be renewed.
local function are_current(call, found, known_places)
  local places, are_all = 0, true
  for _, replica in pairs(found) do
    places, are_all = places + replica.places, are_all and recovery.has_current_lease(replica, call)
  end
  return are_all and places > 0 and places >= known_places
end

-- Returns whether the lease is renewed. The number of places alone does not show that a place has left: a newcomer
-- that the replica does not know of yet makes up for it. But each grant has a wake, and the state its number.
local function renew(call, name, state, known)
  local found = read_places(call, name, known.keepsAny)
  if not are_current(call, found, known.places) or stored.last_wake(state) ~= known.wakeNumber then
    return false
  end
  stored.write_first(name, call)
  for id, replica in pairs(found) do
    replica.lease_ends = replicas.renewed_until(replica, call)
    redis.call('HSET', name, id, replicas.format(replica))
  end
  return true
end

local function run(KEYS, ARGV)
  local call, left = calls.read(ARGV), {}
  for i, known in ipairs(cjson.decode(ARGV[calls.FIRST_OWN])) do
    local key = (i - 1) * NAMES_PER_KEY
    local succeeded, is_renewed = pcall(renew, call, KEYS[key + 1], KEYS[key + 2], known)
    -- The settle of a key that fails meets its error again.
    if not (succeeded and is_renewed) then
      left[#left + 1] = i
    end
  end
  return left
end
