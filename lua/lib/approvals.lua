-- The approvals of a key: those that count in its limits (limits/key-limits), and among them those that are held
-- (lib/holds).

local given_back = require 'lib/given-back'
local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local own_ids = require 'limits/own-ids'
local past_requests = require 'lib/past-requests'
local requests = require 'lib/requests'

local approvals = {}

-- Whether one more approval is kept: among the held ones, and in each limit.
function approvals.is_kept(keys, state, call, request)
  return (not request.holdMillis or holds.free(state) > 0)
    and key_limits.have_free_ids(keys, state, call, request.holdMillis, request.list and request.list.id)
end

-- Approves ids with one hit each. An id that is approved already does not count again.
function approvals.add_all(keys, state, call, ids)
  for _, limit in ipairs(key_limits.counting(state)) do
    limit:take_all(keys, state, call, ids)
  end
end

-- Approves requests. One that has waited with a kept place is kept for its caller first.
function approvals.add(keys, state, call, approved)
  for _, request in ipairs(approved) do
    if request.state == requests.WAITING and request.keepMillis then
      request.state = requests.UNCLAIMED
      holds.add(keys, state, call, request)
    elseif request.holdMillis then
      request.state = requests.HELD
      holds.add(keys, state, call, request)
    else
      key_limits.take(keys, state, call, request.requestId, request.hits, false, lists.id_of(request.list))
      if requests.is_recorded(state, request) then
        requests.remember(keys, state, call, request, requests.APPROVED)
      end
    end
  end
end

-- Releases the ids among these that are approved, with all hits. `is_unused`: nobody has got the approvals, so that
-- they count in no limit. `found`: their requests, as far as there are records. Returns how many there are.
function approvals.release(keys, state, call, ids, is_unused, found)
  return given_back.note_if_less(state, call, function()
    if #state.limits == 1 and own_ids.have_one_each(state) and not state.groups then
      return state.own:give_all_back(keys, ids)
    end
    local released = 0
    for _, id in ipairs(ids) do
      local request = found[id]
      local was_held = request ~= nil and requests.counts_as_held(request) and holds.release(keys, state, request)
      local had_any = key_limits.give_back(keys, state, id, request and lists.id_of(request.list), was_held, is_unused)
      released = released + ((was_held or had_any) and 1 or 0)
    end
    return released
  end)
end

-- The ids among these that were approved, in this window or in one that is remembered, or are held: id -> when its hold
-- lapses, or math.huge without a hold. `found`: their requests, as far as there are records.
function approvals.find(keys, ids, found, now_ms)
  local approved = {}
  for id in pairs(past_requests.find({ keys.requests, unpack(keys.past_requests) }, ids)) do
    approved[id] = math.huge
  end
  for id, lapses in pairs(holds.lapses_of(keys, found, now_ms)) do
    approved[id] = lapses > now_ms and lapses or approved[id]
  end
  return approved
end

return approvals
