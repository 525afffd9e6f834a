-- Decides plain checks, which are nearly all: without overrides, hits or waiting, of a key that has the caller's limits
-- and for which nobody has ever waited. lib/checks decides them in the same way, as it decides all others. But a plain
-- check needs no tables and few calls, which halves Redis's time for it.
-- test/redis/lua/plain-checks.test.ts compares the two ways.
--@include lib/call
--@include lib/digits
--@include lib/keys
--@include lib/state-values
--@include lib/turns
--@include lib/window

-- How many of the checks are approved, from the first on.
local function count_approved(limits, approved, checks)
  return math.max(0, math.min(checks, limits.max - approved))
end

local function approve_plainly(requests, arguments, first_id, checks)
  return redis.call('SADD', requests, unpack(arguments, first_id, first_id + checks - 1))
end

local function decide_in_window(limits, start, values, names, first_key, arguments, first_id, checks)
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local approved = tonumber(values[3])
  local granted = count_approved(limits, approved, checks)
  if granted > 0 then
    local added = approve_plainly(requests, arguments, first_id, granted)
    approved = approved + added
    redis.call('HSET', state, 'approved', digits(approved))
    if redis.call('SCARD', requests) == added then
      redis.call('PEXPIREAT', requests, digits(idle_at(start, limits.window)))
    end
  end
  if granted < checks then
    redis.call('HSET', state, 'denied', digits((values[5] or 0) + checks - granted))
  end
  return start, approved, granted
end

local function decide_in_new_window(limits, start, values, names, first_key, names_given, arguments, first_id, checks)
  local state, requests = names[first_key], names[first_key + REQUESTS]
  local turn = tonumber(values[4])
  local had_requests = values[3] ~= '0'
  if had_requests then
    turn = next_turn(turn)
  end
  local granted = count_approved(limits, 0, checks)
  redis.call('HSET', state, 'start', digits(start), 'approved', digits(granted), 'turn', digits(turn))
  if values[5] or granted < checks then
    redis.call('HSET', state, 'denied', digits(checks - granted))
  end
  if had_requests then
    -- The names of past requests come last.
    keep_requests(requests, names[first_key + names_given - TURNS + turn - 1])
  end
  local expiry = digits(idle_at(start, limits.window))
  if granted > 0 then
    approve_plainly(requests, arguments, first_id, granted)
    redis.call('PEXPIREAT', requests, expiry)
  end
  redis.call('PEXPIREAT', state, expiry)
  return start, granted, granted
end

-- Decides checks of the key whose names begin at names[first_key], with ids from arguments[first_id] on. `limits`: of
-- the key. `values`: from `read_values`. Returns the start of the window, its approvals, and how many of the checks are
-- approved, from the first on. Returns nil and changes nothing if these are no plain checks, or if they begin a window
-- without the names for it.
--
-- The first write takes memory, so that a full Redis refuses it (`decide_in_full_memory` in lib/instance).
local function decide_plainly(call, limits, values, names, first_key, names_given, arguments, first_id, checks)
  if values[2] ~= limits.text or values[6] then
    return nil
  elseif values[3] + checks > call.max_ids or windows_share_set(call, limits.window) then
    return nil
  end
  local start, window, now_ms = tonumber(values[1]), limits.window, call.now_ms
  if is_in_window(start, window, now_ms) then
    return decide_in_window(limits, start, values, names, first_key, arguments, first_id, checks)
  elseif now_ms >= start and now_ms < idle_at(start, window) and names_given > NAMES_IN_WINDOW then
    start = start_of_window(start, window, now_ms)
    return decide_in_new_window(limits, start, values, names, first_key, names_given, arguments, first_id, checks)
  end
end
