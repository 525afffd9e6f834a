-- Serves the waiters of a key, and tells when somebody waits though the limits have room: `state.serving` is 1 then. A
-- check that is decided then would not be the next head of the queue, and each call looks at the queue first.
--
-- `state.made_room`: an approval was released, the maximum raised, a hold or a pause ended, or a place put back.

local approvals = require 'lib/approvals'
local heads = require 'queue/heads'
local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local pause = require 'lib/pause'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local requests = require 'lib/requests'
local room = require 'lib/room'
local stored = require 'lib/stored'

local serving = {
  -- A call that serves or takes more entries than this would block other callers of Redis for too long.
  MOST_SERVED = 500,
  MOST_TAKEN = 2000,
}
local MOST_SERVED, MOST_TAKEN = serving.MOST_SERVED, serving.MOST_TAKEN

function serving.left_of(keys, state, call)
  return { limits = key_limits.left(keys, state, call), holds = holds.free(state) }
end

-- Whether a check that joined the queue now would be the next to be approved, if it fits. `list`: its lane or group, or nil.
function serving.is_next(keys, state, call, list, hits)
  if room.is_closed(state) then
    return false
  elseif state.serving == 0 then
    return true
  elseif not state.lists then
    return false
  end
  local tally = queue.read(keys, state, call)
  local walk = heads.walk(keys, state, call, tally, 1, 1)
  local place = heads.place_of_newcomer(keys, state, call, walk, list, hits)
  return heads.is_next(state, call, tally, walk, serving.left_of(keys, state, call), place)
end

-- A check that lacks room has joined as the next one to be approved. Those that were next may be no more.
function serving.note_next(keys, state, call, joined)
  if not state.lists then
    state.stopped_heads = { joined }
    return
  end
  local tally = queue.read(keys, state, call)
  local walk = heads.walk(keys, state, call, tally, 1, 1)
  state.stopped_heads = heads.find_stopped(state, call, tally, walk, serving.left_of(keys, state, call))
end

-- Whether any of the requests takes more than one hit, has a list or needs a record.
local function have_terms(state, approved)
  if state.lists then
    return true
  end
  for _, request in ipairs(approved) do
    if request.hits ~= 1 or requests.is_recorded(state, request) then
      return true
    end
  end
  return false
end

-- Approves waiters from the head of the queue while the limits have room. One call serves a limited number, so that
-- Redis answers others in between. `state.serves_more`: the next call can approve more.
local function serve_queue(keys, state, call)
  local tally = queue.read(keys, state, call)
  local granted, taken = state.granted or {}, 0
  state.stopped_heads = nil
  key_limits.serve(state, true)
  local function approve(approved)
    if have_terms(state, approved) then
      approvals.add(keys, state, call, approved)
    else
      approvals.add_all(keys, state, call, requests.ids_of(approved))
    end
    for _, request in ipairs(approved) do
      granted[#granted + 1] = requests.claim(request.requestId, request.owner)
      if state.groups and request.list then
        state.granted_lists = state.granted_lists or {}
        table.insert(state.granted_lists, request.list)
      end
    end
  end
  local read_first = MOST_SERVED
  while key_limits.fit(state, 1) and not state.stopped_heads
    and tally.living > 0 and #granted < MOST_SERVED and taken < MOST_TAKEN
  do
    local left = serving.left_of(keys, state, call)
    -- The free part of a token bucket may lack something by rounding.
    local most, took = math.min(math.ceil(state.own:free()), MOST_SERVED - #granted), 0
    if taken == 0 and (left.holds <= 0 or key_limits.lacks_ids(left.limits)) then
      -- Then the head waits on as a rule, and nobody is read in vain. If it is approved, the next ones are read.
      read_first = 1
    end
    most, read_first = math.min(most, read_first), 2 * read_first
    took, state.stopped_heads = heads.take(keys, state, call, left, most, approve)
    taken = taken + took
  end
  if not key_limits.fit(state, 1) then
    -- More than what the heads need keeps them waiting.
    state.stopped_heads = nil
  end
  if tally.living > 0 then
    state.serving = key_limits.fit(state, 1) and 1 or 0
  else
    key_limits.serve(state, false)
    state.serving = 0
    if tally.places > 0 then
      queue.drop(keys, state, tally)
    end
  end
  state.serves_more = state.serving == 1 and not state.stopped_heads
  state.granted = granted
  if #granted > 0 then
    state.served = call.now_ms
    -- The leases of the waiters may have run out before this window began, which left `expires` as it was.
    state.expires = math.max(state.expires, stored.idle_time(state))
  end
end

-- Approves waiters if there is room again. Every script calls it before it approves any other check. So while somebody
-- waits, a limit is full, the key is paused or recovers, or `state.serving` is 1.
function serving.serve(keys, state, call)
  if state.ticket == 0 then
    return
  end
  if state.unsorted == 1 and not recovery.is_on(state) then
    -- This call may put back only some of the waiters that were lost, and calls for the others follow. Without room
    -- the sort can wait for these calls.
    if key_limits.fit(state, 1) or not state.has_rejoined then
      queue.sort(keys, state, call)
    end
  end
  if not (state.rolled or state.made_room or state.serving == 1) then
    return
  end
  local tally = queue.read(keys, state, call)
  if tally.places == 0 then
    state.serving = 0
    return
  end
  recovery.begin_if_redis_was_down(state, tally, call)
  if not recovery.is_on(state) then
    if not pause.is_on(state) then
      serve_queue(keys, state, call)
    end
  elseif state.made_room and not state.has_rejoined then
    -- Without a wake, replicas that asked in this recovery when the window was full would settle at the window's end.
    state.must_wake = true
  end
end

return serving
