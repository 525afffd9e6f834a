-- Decides plain checks of a fixed window. Nearly all checks are plain: without overrides, hits or waiting, of a key that has
-- the caller's limits and for which nobody has ever waited. lib/checks decides them in the same way, as it decides all
-- others. But a plain check needs no tables and few calls, which halves Redis's time for it.
-- test/redis/lua/checks.test.ts compares the two ways. lib/plain-checks-in-period has those of other limits.

local digits = require 'lib/digits'
local key_names = require 'lib/key-names'
local generations = require 'lib/generations'
local window = require 'limits/window'

local plain_checks = {}

-- Each lookup in a table costs nearly all checks.
local REQUESTS, IN_WINDOW = key_names.REQUESTS, key_names.IN_WINDOW
local is_current, windows_share_set = window.is_current, generations.windows_share_set

-- How many of the checks are approved, from the first on.
local function count_approved(size, own, approved)
  return math.max(0, math.min(size, own.max - approved))
end

local function approve(requests, batch, granted)
  local first_id = batch.first_id
  return redis.call('SADD', requests, unpack(batch.arguments, first_id, first_id + granted - 1))
end

local function decide_in_window(call, batch, size, own, start, values)
  local names, first_key = batch.names, batch.first_key
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local approved = tonumber(values[3])
  local granted = count_approved(size, own, approved)
  if granted > 0 then
    local added = approve(requests, batch, granted)
    approved = approved + added
    redis.call('HSET', state, 'approved', digits(approved))
    if redis.call('SCARD', requests) == added then
      redis.call('PEXPIREAT', requests, digits(window.idle_at(start, own.window)))
    end
  end
  if granted < size then
    redis.call('HSET', state, 'denied', digits((values[5] or 0) + size - granted))
  end
  return window.micros_to_end(start, own.window, call.now_us), approved, granted
end

local function decide_in_new_window(call, batch, size, own, start, values)
  local names, first_key = batch.names, batch.first_key
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local generation = tonumber(values[4])
  local had_requests = values[3] ~= '0'
  if had_requests then
    generation = generations.after(generation)
  end
  local granted = count_approved(size, own, 0)
  redis.call('HSET', state, 'start', digits(start), 'approved', digits(granted), 'gen', digits(generation))
  if values[5] or granted < size then
    redis.call('HSET', state, 'denied', digits(size - granted))
  end
  if had_requests then
    -- The names of past requests come last.
    generations.keep(requests, names[first_key + batch.names_given - generations.COUNT + generation - 1])
  end
  local expiry = digits(window.idle_at(start, own.window))
  if granted > 0 then
    approve(requests, batch, granted)
    redis.call('PEXPIREAT', requests, expiry)
  end
  redis.call('PEXPIREAT', state, expiry)
  return window.micros_to_end(start, own.window, call.now_us), granted, granted
end

-- Decides the plain checks of a batch. `values`: of its key, from `key_names.read_values`.
-- Returns the microseconds until there may be room again, what counts of the limit, and how many of the checks are approved,
-- from the first on. Returns nil and changes nothing if a set of ids may become full, if windows share it, if the clock has
-- gone back, if the key is idle, or if a window begins without the names for it.
--
-- The first write takes memory, so that a full Redis refuses it (lib/stored).
function plain_checks.decide(call, batch, values)
  local size, own = batch.size, batch.rules.own
  local start, length, now_ms = tonumber(values[1]), own.window, call.now_ms
  if values[3] + size > call.max_ids or windows_share_set(call, length) then
    return nil
  elseif is_current(start, length, now_ms) then
    return decide_in_window(call, batch, size, own, start, values)
  elseif now_ms >= start and now_ms < window.idle_at(start, length) and batch.names_given > IN_WINDOW then
    return decide_in_new_window(call, batch, size, own, window.start_of(start, length, now_ms), values)
  end
end

return plain_checks
