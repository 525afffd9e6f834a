-- The holders of approvals, as far as checks have named them. Two hashes:
--   holders           of held approvals: request id -> `<when the hold began, in ms since 1970>:<holder>`
--   holders:waiting   of waiters whose approvals will be held: request id -> holder
--
-- The state's field `has_holders` is 1 if either may have any, so that other keys, where it is 0, need no look at them. The
-- names are built here: declared names cost Redis time in each call.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local more = require 'lib/more'
local stored = require 'lib/stored'

local holders = {}

function holders.name(keys)
  return keys.state .. ':holders'
end

local function waiting_name(keys)
  return holders.name(keys) .. ':waiting'
end

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. This meets the names before
-- anything is written.
function holders.require_names(keys)
  redis.call('EXISTS', holders.name(keys), waiting_name(keys))
end

local function begin(keys, state)
  if state.has_holders == 0 then
    stored.remove_leftover(holders.name(keys))
    stored.remove_leftover(waiting_name(keys))
    more.set(state, 'has_holders', 1)
  end
end

-- A hold begins.
function holders.add(keys, state, call, id, holder)
  begin(keys, state)
  redis.call('HSET', holders.name(keys), id, digits(call.now_ms) .. ':' .. holder)
end

-- Returns the holder in a value of the hash, and when the hold began, in ms since 1970; nil if there is no value.
function holders.parse(text)
  if not text then
    return nil
  end
  local since, holder = string.match(text, '^(%d+):(.*)$')
  return holder, tonumber(since)
end

-- The holder of a held approval, or of a waiter; nil if its check has named none.
function holders.of(keys, state, id, is_waiting)
  if state.has_holders == 0 then
    return nil
  elseif is_waiting then
    return redis.call('HMGET', waiting_name(keys), id)[1] or nil
  end
  return (holders.parse(redis.call('HMGET', holders.name(keys), id)[1]))
end

-- The holds of these ids have ended.
function holders.end_holds(keys, state, ids)
  if state.has_holders == 1 then
    chunks.call('HDEL', holders.name(keys), ids)
  end
end

-- No hold is left.
function holders.end_all_holds(keys, state)
  if state.has_holders == 1 then
    redis.call('UNLINK', holders.name(keys))
  end
end

-- Waiters, some with a holder, join the queue.
function holders.join_queue(keys, state, waiters)
  local new = {}
  for _, waiter in ipairs(waiters) do
    if waiter.holder then
      new[#new + 1], new[#new + 2] = waiter.requestId, waiter.holder
    end
  end
  if #new > 0 then
    begin(keys, state)
    chunks.call('HSET', waiting_name(keys), new)
  end
end

-- Gives waiters their holders.
function holders.resolve(keys, state, waiters)
  if state.has_holders == 0 or #waiters == 0 then
    return
  end
  local ids = {}
  for i, waiter in ipairs(waiters) do
    ids[i] = waiter.requestId
  end
  for i, holder in ipairs(chunks.list('HMGET', waiting_name(keys), ids)) do
    waiters[i].holder = holder or nil
  end
end

-- Forgets waiters that have left the queue.
function holders.forget_waiting(keys, state, ids)
  if state.has_holders == 1 then
    chunks.call('HDEL', waiting_name(keys), ids)
  end
end

-- Nobody waits any more.
function holders.drop_waiting(keys, state)
  if state.has_holders == 1 then
    redis.call('UNLINK', waiting_name(keys))
  end
end

-- Looks whether holders of waiters are left from a state that Redis has lost.
function holders.find_leftovers(keys, state)
  if redis.call('EXISTS', waiting_name(keys)) == 1 then
    more.set(state, 'has_holders', 1)
  end
end

-- Nobody holds an approval of the key, or waits for one.
function holders.remove_all(keys, state)
  if state.has_holders == 1 then
    redis.call('UNLINK', holders.name(keys), waiting_name(keys))
    more.set(state, 'has_holders', 0)
  end
end

-- Sets when both expire.
function holders.expire(keys, state, expire_at)
  if state.has_holders == 1 then
    redis.call('PEXPIREAT', holders.name(keys), expire_at)
    redis.call('PEXPIREAT', waiting_name(keys), expire_at)
  end
end

return holders
