-- Renews the leases of a replica for several keys, and does nothing else. It leaves a lease as it is if a settle has
-- to look at the key first, because the key may differ from what the replica knows: Redis has lost a part of it, a wake
-- was lost, the replica or Redis was down, or Redis's clock has gone back.
--
-- KEYS  per key: 1 replicas, 2 state, 3 another name that exists as long as anybody waits
-- ARGV  1 to 6 as every call has them: 1 replica id, whose leases are renewed, 2 lease of a waiting replica in
--       ms; 3 to 6 do not matter here
--       then per key: how many places the replica has in the queue, with `+<ms>` after it for each time for which it keeps
--       places, and the number of the last wake, as far as it knows; a number that no wake has if it knows none
-- Reply the numbers of the keys whose leases are not renewed, in their order, from 1 on

local calls = require 'lib/calls'
local full_memory = require 'lib/full-memory'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'

local NAMES_PER_KEY = 3
local ARGUMENTS_PER_KEY = 2

-- The places of the caller, by the ids under which they count, and their sum; nil if a lease has to be looked at. `known`:
-- what the caller knows of them.
local function read_places(call, name, known)
  local ids, found, sum = { call.replica }, {}, 0
  for keep in string.gmatch(known, '%+(%d+)') do
    ids[#ids + 1] = replicas.id_of(call.replica, tonumber(keep))
  end
  for i, text in ipairs(redis.call('HMGET', name, unpack(ids))) do
    local replica = replicas.parse(ids[i], text)
    if replica and not recovery.has_current_lease(replica, call) then
      return nil
    end
    found[ids[i]], sum = replica or nil, sum + (replica and replica.places or 0)
  end
  return found, sum
end

-- Returns whether the lease is renewed. The number of places alone does not show that a place has left: a newcomer
-- that the replica does not know of yet makes up for it. But each grant has a wake, and the state its number.
local function renew(call, name, state, other, known_places, known_wake)
  local found, places = read_places(call, name, known_places)
  if not found or places == 0 or places < tonumber(string.match(known_places, '^%d+')) then
    return false
  end
  -- `more` is there as long as anybody waits, and `wake` since this version has published one.
  local values = redis.call('HMGET', state, 'more', 'wake')
  if not values[1] or tonumber(values[2] or 0) ~= known_wake then
    return false
  end
  if redis.call('EXISTS', other) == 0 then
    return false
  end
  full_memory.write_first(name, call)
  for id, replica in pairs(found) do
    replica.lease_ends = replicas.renewed_until(replica, call)
    redis.call('HSET', name, id, replicas.format(replica))
  end
  return true
end

local function run(KEYS, ARGV)
  local call, left = calls.read(ARGV), {}
  for i = 1, #KEYS / NAMES_PER_KEY do
    local key = (i - 1) * NAMES_PER_KEY
    local own = calls.FIRST_OWN + (i - 1) * ARGUMENTS_PER_KEY
    local places, known_wake = ARGV[own], tonumber(ARGV[own + 1])
    local succeeded, is_renewed = pcall(renew, call, KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], places, known_wake)
    -- The settle of a key that fails meets its error again.
    if not (succeeded and is_renewed) then
      left[#left + 1] = i
    end
  end
  return left
end
