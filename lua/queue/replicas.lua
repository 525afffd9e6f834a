-- The places of each replica in a key's queue: a hash, replica id -> `<until when its lease runs, in ms>:<its places>`.
-- The sum of all places is the size of the hash `waiting`. The places of a replica whose lease has run out do not
-- count, and are skipped. They count again if the replica renews its lease after all.
--
-- A tally is what a script has read of it: `places` counts all waiters, `living` those of living replicas, and
-- `replicas` has, by id, the end of each replica's lease and its places.

local chunks = require 'lib/chunks'
local weight = require 'lib/weight'

local replicas = {}

-- Parses a value of the hash; nil if there is none.
function replicas.parse(text)
  if not text then
    return nil
  end
  local lease_ends, places = string.match(text, '^(%d+):(%d+)$')
  return { lease_ends = tonumber(lease_ends), places = tonumber(places) }
end

function replicas.format(replica)
  return string.format('%.0f:%.0f', replica.lease_ends, replica.places)
end

function replicas.is_alive(replica, now_ms)
  return replica.lease_ends > now_ms
end

function replicas.of(tally, replica_id)
  local replica = tally.replicas[replica_id]
  if not replica then
    replica = { lease_ends = 0, places = 0 }
    tally.replicas[replica_id] = replica
  end
  return replica
end

function replicas.add_places(tally, replica_id, count, now_ms)
  local replica = replicas.of(tally, replica_id)
  replica.places = replica.places + count
  replica.is_changed = true
  tally.places = tally.places + count
  if replicas.is_alive(replica, now_ms) then
    tally.living = tally.living + count
  end
end

-- Counts no places, to count them again.
function replicas.forget_places(tally)
  tally.places, tally.living = 0, 0
  for _, replica in pairs(tally.replicas) do
    replica.places, replica.is_changed = 0, true
  end
end

function replicas.forget(tally)
  tally.places, tally.living, tally.replicas = 0, 0, {}
end

-- Renews the lease of the caller.
function replicas.renew_lease(tally, call)
  local replica = replicas.of(tally, call.replica)
  if not replicas.is_alive(replica, call.now_ms) then
    tally.living = tally.living + replica.places
  end
  replica.lease_ends = call.now_ms + call.lease
  replica.is_changed = true
end

-- After the clock has gone back, no lease lasts longer than the caller's from now on. Those that are cut do not end.
function replicas.cut_leases(tally, call)
  local latest = call.now_ms + call.lease
  for _, replica in pairs(tally.replicas) do
    if replica.lease_ends > latest then
      replica.lease_ends, replica.is_changed = latest, true
    end
  end
end

-- Reads the tally. Returns it, and whether the two hashes agree. A queue that becomes empty is removed as a whole.
function replicas.load(keys, now_ms)
  local tally = { places = redis.call('HLEN', keys.waiting), living = 0, replicas = {} }
  if tally.places == 0 then
    return tally, redis.call('EXISTS', keys.replicas) == 0
  end
  local counted = 0
  local values = weight.add(redis.call('HGETALL', keys.replicas), 2)
  for i = 1, #values, 2 do
    local replica = replicas.parse(values[i + 1])
    tally.replicas[values[i]] = replica
    counted = counted + replica.places
    if replicas.is_alive(replica, now_ms) then
      tally.living = tally.living + replica.places
    end
  end
  return tally, counted == tally.places
end

-- Writes the replicas whose leases or numbers of places changed.
function replicas.write(keys, tally)
  local changed, gone = {}, {}
  for replica_id, replica in pairs(tally.replicas) do
    if replica.is_changed and replica.places == 0 then
      gone[#gone + 1] = replica_id
    elseif replica.is_changed then
      changed[#changed + 1] = replica_id
      changed[#changed + 1] = replicas.format(replica)
    end
  end
  chunks.call('HSET', keys.replicas, changed)
  chunks.call('HDEL', keys.replicas, gone)
end

return replicas
