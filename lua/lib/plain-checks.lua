-- Decides plain checks, which are nearly all: without overrides, hits or waiting, of a key that has the caller's limits
-- and for which nobody has ever waited. lib/checks decides them in the same way, as it decides all others. But a plain
-- check needs no tables and few calls, which halves Redis's time for it.
-- test/redis/lua/plain-checks.test.ts compares the two ways.

local digits = require 'lib/digits'
local key_names = require 'lib/key-names'
local turns = require 'lib/turns'
local window = require 'lib/window'

local plain_checks = {}

local REQUESTS, IN_WINDOW = key_names.REQUESTS, key_names.IN_WINDOW

-- How many of the checks are approved, from the first on.
local function count_approved(batch, approved)
  return math.max(0, math.min(batch.size, batch.limits.max - approved))
end

local function approve(requests, batch, granted)
  return redis.call('SADD', requests, unpack(batch.arguments, batch.first_id, batch.first_id + granted - 1))
end

local function decide_in_window(batch, start, values)
  local names, first_key, size = batch.names, batch.first_key, batch.size
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local approved = tonumber(values[3])
  local granted = count_approved(batch, approved)
  if granted > 0 then
    local added = approve(requests, batch, granted)
    approved = approved + added
    redis.call('HSET', state, 'approved', digits(approved))
    if redis.call('SCARD', requests) == added then
      redis.call('PEXPIREAT', requests, digits(window.idle_at(start, batch.limits.window)))
    end
  end
  if granted < size then
    redis.call('HSET', state, 'denied', digits((values[5] or 0) + size - granted))
  end
  return start, approved, granted
end

local function decide_in_new_window(batch, start, values)
  local names, first_key = batch.names, batch.first_key
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local turn = tonumber(values[4])
  local had_requests = values[3] ~= '0'
  if had_requests then
    turn = turns.after(turn)
  end
  local granted = count_approved(batch, 0)
  redis.call('HSET', state, 'start', digits(start), 'approved', digits(granted), 'turn', digits(turn))
  if values[5] or granted < batch.size then
    redis.call('HSET', state, 'denied', digits(batch.size - granted))
  end
  if had_requests then
    -- The names of past requests come last.
    turns.keep(requests, names[first_key + batch.names_given - turns.COUNT + turn - 1])
  end
  local expiry = digits(window.idle_at(start, batch.limits.window))
  if granted > 0 then
    approve(requests, batch, granted)
    redis.call('PEXPIREAT', requests, expiry)
  end
  redis.call('PEXPIREAT', state, expiry)
  return start, granted, granted
end

-- Decides the checks of a batch. `values`: from `state_values.read`. Returns the start of the window, its approvals, and
-- how many of the checks are approved, from the first on. Returns nil and changes nothing if these are no plain checks, or
-- if they begin a window without the names for it.
--
-- The first write takes memory, so that a full Redis refuses it (`instance.decide_in_full_memory`).
function plain_checks.decide(call, batch, values)
  local limits = batch.limits
  local start, length, now_ms = tonumber(values[1]), limits.window, call.now_ms
  if values[2] ~= limits.text or values[6] then
    return nil
  elseif values[3] + batch.size > call.max_ids or turns.windows_share_set(call, length) then
    return nil
  end
  if window.is_current(start, length, now_ms) then
    return decide_in_window(batch, start, values)
  elseif now_ms >= start and now_ms < window.idle_at(start, length) and batch.names_given > IN_WINDOW then
    return decide_in_new_window(batch, window.start_of(start, length, now_ms), values)
  end
end

return plain_checks
