-- The queue of a key: a sorted set whose members are `<request id>@<replica id>` and whose scores
-- are tickets. A ticket is the arrival in Redis's microseconds, pushed up where needed so that no
-- ticket is ever given out twice: tickets are the order of arrival, and stay so when a replica puts
-- its waiters back after Redis lost its memory.

-- SADD and ZREM take as many arguments as Lua can unpack; this stays well below that.
local CHUNK = 1000

-- The number of waiters, asked for once per script at most.
local function count_waiting(queue_key, state)
  state.waiting = state.waiting or redis.call('ZCARD', queue_key)
  return state.waiting
end

local function queue_member(request_id, replica)
  return request_id .. '@' .. replica
end

local function next_ticket(state)
  state.ticket = math.max(state.now_us, state.ticket + 1)
  return state.ticket
end

-- Which replicas' leases still run, as a set, and a list of those that have run out.
local function living_replicas(replicas_key, now_ms)
  local living, lapsed = {}, {}
  local leases = redis.call('HGETALL', replicas_key)
  for i = 1, #leases, 2 do
    if tonumber(leases[i + 1]) > now_ms then
      living[leases[i]] = true
    else
      lapsed[#lapsed + 1] = leases[i]
    end
  end
  return living, lapsed
end

local function split_member(member)
  local at = string.find(member, '@', 1, true)
  return string.sub(member, 1, at - 1), string.sub(member, at + 1)
end

local function replica_of(member)
  local _, replica = split_member(member)
  return replica
end

-- Whether a replica may have a place in the queue. One that is long is not looked through: the lease of
-- a replica without a place does no harm until it runs out.
local function may_hold_place(queue_key, replica)
  if redis.call('ZCARD', queue_key) > CHUNK then
    return true
  end
  for _, member in ipairs(redis.call('ZRANGE', queue_key, 0, -1)) do
    if replica_of(member) == replica then
      return true
    end
  end
  return false
end

-- The number of waiters whose replicas live. The scan is paid only while a lapsed lease is about.
local function count_living(queue_key, replicas_key, now_ms)
  local waiting = redis.call('ZCARD', queue_key)
  if waiting == 0 then
    return 0
  end
  local living, lapsed = living_replicas(replicas_key, now_ms)
  if #lapsed > 0 then
    for _, member in ipairs(redis.call('ZRANGE', queue_key, 0, -1)) do
      if not living[replica_of(member)] then
        waiting = waiting - 1
      end
    end
  end
  return waiting
end

-- Removes the waiters of replicas whose lease has run out, and these leases, so that the scan of
-- the queue is paid once for each. Returns whether there was one.
local function purge_dead(queue_key, replicas_key, now_ms)
  local living, lapsed = living_replicas(replicas_key, now_ms)
  if #lapsed == 0 then
    return false
  end
  local dead = {}
  for _, member in ipairs(redis.call('ZRANGE', queue_key, 0, -1)) do
    if not living[replica_of(member)] then
      dead[#dead + 1] = member
    end
  end
  for first = 1, #dead, CHUNK do
    redis.call('ZREM', queue_key, unpack(dead, first, math.min(first + CHUNK - 1, #dead)))
  end
  for first = 1, #lapsed, CHUNK do
    redis.call('HDEL', replicas_key, unpack(lapsed, first, math.min(first + CHUNK - 1, #lapsed)))
  end
  return true
end

-- Approves waiters from the head of the queue while the window has room, and returns their ids in
-- order. The dead are passed over without using capacity. `state.waiting` must be known.
--
-- While a slot of a cluster moves, Redis fails a script at the first key that it does not find, be it one
-- that the script itself has emptied. So whoever is approved is put into the set before the queue is
-- touched, and a queue that has become empty is not looked at any more.
local function serve_queue(queue_key, requests_key, replicas_key, state, now_ms)
  local granted = {}
  local living = nil
  while state.approved < state.max and state.waiting > 0 do
    local room = math.min(state.max - state.approved, CHUNK)
    local heads = redis.call('ZRANGE', queue_key, 0, room - 1)
    if #heads == 0 then
      break
    end
    living = living or living_replicas(replicas_key, now_ms)
    local ids = {}
    for _, member in ipairs(heads) do
      local request_id, replica = split_member(member)
      if living[replica] then
        ids[#ids + 1] = request_id
      end
    end
    if #ids > 0 then
      state.approved = state.approved + redis.call('SADD', requests_key, unpack(ids))
      for _, id in ipairs(ids) do
        granted[#granted + 1] = id
      end
    end
    redis.call('ZREMRANGEBYRANK', queue_key, 0, #heads - 1)
    state.waiting = state.waiting - #heads
  end
  return granted
end

-- Every ticket below the one returned has left the queue. A replica that holds a waiter with such a
-- ticket and has heard of no grant knows that it missed one, or that Redis has lost its place.
local function lowest_waiting_ticket(queue_key, state)
  if count_waiting(queue_key, state) > 0 then
    return tonumber(redis.call('ZRANGE', queue_key, 0, 0, 'WITHSCORES')[2])
  end
  return math.max(state.ticket + 1, state.now_us)
end
