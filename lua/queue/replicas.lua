-- The places of each replica in a key's queue: a hash, replica id -> `<until when its lease runs, in ms>:<its places>`.
-- The places of a replica whose lease has run out do not count, and are skipped. They count again if the replica renews its
-- lease after all.
--
-- Places that are kept for their callers count apart, as if they were those of another replica: `<replica id>+<ms>`. They
-- outlive the replica by these ms, by which their lease is longer. It is renewed with the replica's own. The ms are
-- rounded up, so that a replica has few of these ids.
--
-- A tally is what a script has read of it: `places` counts all waiters, `living` those of living replicas, and
-- `replicas` has, by id, the end of each replica's lease, its places, and by how many ms its places outlive the
-- replica itself: `keep`.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local reads = require 'lib/reads'

local replicas = {}

-- Rounds up to 1, 2 or 5 times a power of ten.
local function round_up(millis)
  local rounded, factors, i = 1, { 2, 2.5, 2 }, 0
  while rounded < millis do
    rounded, i = rounded * factors[i % 3 + 1], i + 1
  end
  return rounded
end

-- The id under which places of a replica count that are kept for `keep` ms; nil if they are not kept.
function replicas.id_of(replica_id, keep)
  return keep and replica_id .. '+' .. digits(round_up(keep)) or replica_id
end

-- The replica of an id, and by how many ms its places outlive the replica.
function replicas.split_id(id)
  local separator = string.find(id, '+', 1, true)
  if not separator then
    return id, 0
  end
  return string.sub(id, 1, separator - 1), tonumber(string.sub(id, separator + 1))
end

-- Parses the value of an id in the hash; nil if there is none.
function replicas.parse(id, text)
  if not text then
    return nil
  end
  local separator, _, keep = string.find(text, ':', 1, true), replicas.split_id(id)
  return {
    lease_ends = tonumber(string.sub(text, 1, separator - 1)), places = tonumber(string.sub(text, separator + 1)), keep = keep,
  }
end

function replicas.format(replica)
  return digits(replica.lease_ends) .. ':' .. digits(replica.places)
end

function replicas.is_alive(replica, now_ms)
  return replica.lease_ends > now_ms
end

function replicas.of(tally, replica_id)
  local replica = tally.replicas[replica_id]
  if not replica then
    local _, keep = replicas.split_id(replica_id)
    replica = { lease_ends = 0, places = 0, keep = keep }
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

function replicas.own_lease_ends(replica)
  return replica.lease_ends - replica.keep
end

-- Until when the places of a replica count if the caller renews its lease now.
function replicas.renewed_until(replica, call)
  return call.now_ms + call.lease + replica.keep
end

-- The entries of the caller in a tally, a list: its own, and those of the places that it keeps.
function replicas.of_caller(tally, call)
  local own = {}
  for id, replica in pairs(tally.replicas) do
    if id == call.replica or replicas.split_id(id) == call.replica then
      own[#own + 1] = replica
    end
  end
  return own
end

function replicas.places_of_caller(tally, call)
  local places = 0
  for _, replica in ipairs(replicas.of_caller(tally, call)) do
    places = places + replica.places
  end
  return places
end

function replicas.renew_lease(tally, call)
  for _, replica in ipairs(replicas.of_caller(tally, call)) do
    if not replicas.is_alive(replica, call.now_ms) then
      tally.living = tally.living + replica.places
    end
    replica.lease_ends = replicas.renewed_until(replica, call)
    replica.is_changed = true
  end
end

-- Whether the caller has a lease from before the clock went back.
function replicas.has_later_lease(tally, call)
  for _, replica in ipairs(replicas.of_caller(tally, call)) do
    if replica.lease_ends > replicas.renewed_until(replica, call) then
      return true
    end
  end
  return false
end

-- After the clock has gone back, no lease lasts longer than the caller's from now on. Those that are cut do not end.
function replicas.cut_leases(tally, call)
  for _, replica in pairs(tally.replicas) do
    local latest = replicas.renewed_until(replica, call)
    if replica.lease_ends > latest then
      replica.lease_ends, replica.is_changed = latest, true
    end
  end
end

-- By how many ms places outlive their replicas at most.
function replicas.longest_keep(tally)
  local longest = 0
  for _, replica in pairs(tally.replicas) do
    longest = math.max(longest, replica.keep)
  end
  return longest
end

-- Reads the tally. A queue that becomes empty is removed as a whole.
function replicas.load(keys, now_ms)
  local tally = { places = 0, living = 0, replicas = {} }
  local values = reads.add(redis.call('HGETALL', keys.replicas), 2)
  for i = 1, #values, 2 do
    local replica = replicas.parse(values[i], values[i + 1])
    tally.replicas[values[i]] = replica
    tally.places = tally.places + replica.places
    if replicas.is_alive(replica, now_ms) then
      tally.living = tally.living + replica.places
    end
  end
  return tally
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
