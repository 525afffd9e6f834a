-- The ids of requests that were approved in windows that have ended, or were released or withdrawn: a set for each of
-- three generations. None of them counts. They serve late calls: a check that is sent again, a settle after a late wake.
--
-- An approval is remembered for three windows after its own, or for two leases if three windows are shorter than a
-- lease. A replica that stalled may ask about it for that long. When a window ends, its set becomes the set of the next
-- generation. If three windows are shorter than a lease, a generation lasts a lease: all windows in it share its set,
-- and approved ids are added to it at once. If rules change the length of windows, it is the shorter of these times.
--
-- When windows become longer or shorter than that, a generation may have begun just before, and the next ones end in
-- another way. So that ids are not forgotten too early, the present generation goes on where it would end next, once: the
-- state's field `goes_on` is GOES_ON until then, and HAS_GONE_ON from then until the generation ends. Until then a longer
-- window shares its set as well.
--
-- `state.generation` is the number of the set that began last.

local chunks = require 'lib/chunks'
local generations = require 'lib/generations'
local own_ids = require 'limits/own-ids'

local past_requests = {}

local function lease_number(start, call)
  return math.floor(start / call.lease)
end

-- The generation has ended, and this one begins.
local function begin_after(state)
  state.generation = generations.after(state.generation)
  state.goes_on = 0
end

local function begin_generation(keys, state)
  begin_after(state)
  redis.call('UNLINK', keys.past_requests[state.generation])
end

-- Ends a generation whose windows share its set, unless it goes on.
local function end_shared(keys, state)
  if state.goes_on == generations.GOES_ON then
    state.goes_on = generations.HAS_GONE_ON
  else
    begin_generation(keys, state)
  end
end

-- Keeps the ids of the window that has ended apart from those of the one that begins. `ended`: the start and the length
-- of that window. Its own length decides whether its ids are in the set of a generation already: the next window may be
-- shorter. `has_requests`: the ended window may have a set. If it has none, an UNLINK would let a new key into a full
-- memory (lib/stored).
function past_requests.end_window(keys, state, call, ended, has_requests)
  own_ids.forget_hits_of_all(keys, state)
  local was_short = generations.windows_share_set(call, ended.window)
  local shared_set = was_short or state.goes_on == generations.GOES_ON
  if has_requests and not shared_set then
    begin_after(state)
    generations.keep(keys.requests, keys.past_requests[state.generation])
  elseif has_requests then
    redis.call('UNLINK', keys.requests)
  end
  if shared_set and not (was_short and lease_number(ended.start, call) == lease_number(state.own.start, call)) then
    end_shared(keys, state)
  end
  if state.goes_on == 0 and was_short ~= generations.windows_share_set(call, state.own.window) then
    state.goes_on = generations.GOES_ON
  end
  if shared_set then
    -- Longer windows from now on do not set its expiry.
    state.has_past = has_requests and not generations.windows_share_set(call, state.own.window)
  end
end

-- Remembers released and withdrawn ids, so that a settle that asks about them late, or a second time, does not put them
-- back. Approvals and releases without end would let the set grow until the window ends, so a full set ends its
-- generation earlier.
function past_requests.remember(keys, state, call, ids)
  if redis.call('SCARD', keys.past_requests[state.generation]) + #ids > call.max_ids then
    begin_generation(keys, state)
  end
  chunks.call('SADD', keys.past_requests[state.generation], ids)
  state.has_past = true
  state.needs_expiry = true
end

-- Those of these ids that are in any of these sets, as a set.
function past_requests.find(names, ids)
  local found = {}
  for _, name in ipairs(names) do
    for i, is_member in ipairs(chunks.list('SMISMEMBER', name, ids)) do
      found[ids[i]] = found[ids[i]] or (is_member == 1 or nil)
    end
  end
  return found
end

-- Forgets that an id was released or withdrawn: its caller asks with it again. It may be among the ids of the window.
function past_requests.forget(keys, id)
  for _, name in ipairs(keys.past_requests) do
    redis.call('SREM', name, id)
  end
end

-- When the ids approved in this window may be forgotten, and those that this call has remembered, which can be after
-- the end of the instance. The state, which has the generation, is kept for as long.
function past_requests.remembered_until(state, call)
  local since = generations.windows_share_set(call, state.own.window) and state.own:ends() or 0
  if state.has_past then
    since = math.max(since, call.now_ms)
  end
  return since > 0 and since + (generations.COUNT - 1) * call.lease or 0
end

-- Sets when the sets to which ids were added expire. A token bucket may have ids although nothing of it counts: waiters
-- are approved of what it has drained below 0.
function past_requests.expire(keys, state, call, expire_at)
  local may_have_ids = state.own.used > 0 or not state.own.has_boundary
  if may_have_ids or state.hits == 1 then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if state.hits == 1 then
    redis.call('PEXPIREAT', own_ids.built_name(keys), expire_at)
  end
  if state.has_past or (may_have_ids and generations.current_shares_set(state, call)) then
    redis.call('PEXPIREAT', keys.past_requests[state.generation], expire_at)
  end
end

-- The same if nothing but approvals was added. A set that had ids before has its expiry already. `state.remembered`: how
-- many ids were added.
function past_requests.expire_new(keys, state, call, expire_at)
  local added = state.remembered
  if redis.call('SCARD', keys.requests) == added then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if generations.current_shares_set(state, call) and redis.call('SCARD', keys.past_requests[state.generation]) == added then
    redis.call('PEXPIREAT', keys.past_requests[state.generation], expire_at)
  end
end

return past_requests
