-- The life of one instance, that is of a limiter key, in a script: open it as of now, change `state`, serve the waiters
-- (lib/serving), close it.

local calls = require 'lib/calls'
local digits = require 'lib/digits'
local group_limits = require 'limits/group-limits'
local held = require 'limits/held'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local kinds = require 'limits/kinds'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local own_ids = require 'limits/own-ids'
local past_requests = require 'lib/past-requests'
local pause = require 'lib/pause'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'
local wake = require 'lib/wake'

local instance = {}

-- The wakes that a call publishes: to every replica that listens, which waiters were approved and when, and when there
-- may be room again. By its number a replica notices that it has missed a wake: `state.wake` is the number of the last
-- one.

-- Whether replicas have to learn of this call: waiters were approved, or there may be room sooner than they know.
local function is_wake_due(keys, state, call)
  if state.must_wake or state.serves_more or state.ended or (state.granted and #state.granted > 0) then
    return true
  end
  -- Replicas may know a later time, at which several hits fit that the head needs. An approval that has just been claimed ends
  -- with its step or drains, which may be sooner than it would have lapsed.
  local depends_on_hits = #state.limits > 1 or #state.of_groups > 0 or not kinds.has_boundary(state.own)
  local has_earlier = state.known_room_at and (
    room.at(keys, state, call) < state.known_room_at or held.first_lapse(state) < state.known_lapse
    or (depends_on_hits and (state.released_at or state.has_claimed or state.limits_changed))
  )
  return has_earlier and queue.count_waiting(keys, state, call) > 0
end

-- Request ids are UUIDs, and replica ids are letters, digits, dots and dashes, so they need no escaping.
local function list(claims)
  return claims and #claims > 0 and '"' .. table.concat(claims, '","') .. '"' or ''
end

-- `granted` and `ended` have claims (lib/requests), those in `ended` with the reason after a `!`: a check has been
-- taken over, or withdrawn by a release.
local function publish_wake(keys, state, call)
  local used, groups = room.used(state, call), room.used_of_groups(state, call, state.granted_lists or {})
  wake.publish(keys.state, call, string.format(
    '{"at":%d,"number":%d,"millisToRoom":%.14g,"waiting":%d,"limits":"%s","approved":%s,"granted":[%s]%s%s}',
    call.now_ms,
    state.wake,
    room.micros_to(keys, state, call) / 1000,
    queue.count_waiting(keys, state, call),
    limits_text.format(state),
    type(used) == 'string' and '"' .. used .. '"' or digits(used),
    list(state.granted),
    state.ended and ',"ended":[' .. list(state.ended) .. ']' or '',
    groups and ',"groups":' .. cjson.encode(groups) or ''
  ))
end

-- While somebody waits, and after an approval from the queue, the keys outlive windows and leases. Redis's
-- clock runs on while Redis stalls or is unreachable, and the queue must still exist afterwards.
local LEASES_KEPT = 6
-- A replica with waiters settles again within this many leases (src/redis/shared/losses.ts). Its renewals
-- in between set no expiry.
local LEASES_UNSETTLED = 15

-- A window in which somebody waits counts as one with a check. Waiters of dead replicas do not count, except in a
-- recovery: their replicas may live.
local function keep_while_waited_for(keys, state, call)
  if state.ticket > 0 and queue.count_waiting(keys, state, call) > 0 then
    state.expires = stored.idle_time(state)
  end
end

local function is_idle(keys, state, call)
  if not room.may_be_idle(state, call.now_ms) then
    return false
  end
  local tally = queue.read(keys, state, call)
  recovery.begin_if_redis_was_down(state, tally, call)
  return recovery.count_waiting(state, tally) == 0
end

-- Until when the key remembers a grant: a replica that was cut off may come back, and ask about its waiter.
local function outage_ends(state, call)
  return state.served > 0 and state.served + LEASES_KEPT * call.lease or 0
end

local function keep_until(state, call)
  return math.max(
    state.expires, past_requests.remembered_until(state, call), outage_ends(state, call),
    state.recovery_until, state.last_lapse, state.paused_until, state.ends, state.groups_until
  )
end

-- Removes an instance that has been idle for too long. Its last state stays for as long as it may be needed.
local function remove_idle(keys, state, call)
  stored.born_at(keys, state)
  own_ids.forget_hits_of_all(keys, state)
  for _, limit in ipairs(state.limits) do
    key_limits.forget_ids(keys, limit)
  end
  redis.call('UNLINK', keys.requests)
  group_limits.drop(keys, state)
  queue.drop(keys, state, queue.read(keys, state, call))
  if keep_until(state, call) <= call.now_ms then
    redis.call('UNLINK', keys.state)
    requests.remove_all(keys, state)
    return
  end
  -- After the clock has gone back, there must be no approvals without ids or holds, and no pause that is over. And a
  -- caller that knows less of Redis would begin the recovery again, in a key that is removed.
  -- The windows of further limits stay, which tell when the key is removed.
  for _, limit in ipairs(state.limits) do
    limit:clear()
  end
  state.max_holds = 0
  stored.write(keys, state)
  -- Holds that have lapsed since are remembered from this call on.
  local expire_at = digits(keep_until(state, call))
  redis.call('PEXPIREAT', keys.state, expire_at)
  requests.expire(keys, state, false, expire_at)
end

-- What `past_requests.end_window` asks of a window that has ended. One that a report has made longer counts as the last of
-- the windows that it took the place of: the ids of a generation are kept from its last window on.
local function ended_window(own)
  return { start = own:ends() - own.window, window = own.window }
end

local function begin_window(keys, state, call)
  local own = state.own
  local ended = ended_window(own)
  -- An approval may have been corrected to no hits.
  local has_requests = state.stored_used > 0 or state.hits == 1
    or (not own.has_boundary and redis.call('EXISTS', keys.requests) == 1)
  in_force.begin_window(keys, state, call.now_ms, call)
  past_requests.end_window(keys, state, call, ended, has_requests)
  -- The sets of past requests may remember an id for longer than its record. Without that, it would be one that was withdrawn.
  requests.forget_ended(keys, state, call, function(ids)
    local needed = past_requests.find(keys.past_requests, ids)
    local found = state.groups and requests.find_all(keys, nil, ids) or {}
    for _, id in ipairs(ids) do
      local list_id = found[id] and lists.id_of(found[id].list)
      needed[id] = needed[id] or key_limits.taken_by(keys, state, id, list_id) ~= nil
    end
    return needed
  end)
  keep_while_waited_for(keys, state, call)
end

-- The instance as of now, or nil if there is none. `state`: from `stored.read`. The second value is the last state of
-- an instance that has been idle for too long. Redis keeps it while it is needed. It shows a replica that has not heard
-- of its waiter's approval yet that Redis has not lost the key.
function instance.open(keys, call, state)
  in_force.require_current_calendars(call)
  if not state then
    return nil
  end
  state.kept_until = keep_until(state, call)
  key_limits.take_calendars(state, call)
  group_limits.begin(keys, state, call)
  stored.write_first(keys.state, call, state)
  -- Replicas with waiters know these times, or earlier ones. Without a ticket nobody has waited.
  state.known_room_at, state.known_lapse = state.ticket > 0 and room.at(keys, state, call), held.first_lapse(state)
  if recovery.begin_by_now(state, call.now_ms) then
    state.clock_went_back = true
    holds.shorten(keys, state, call)
    -- Rules stay from now on at most.
    in_force.may_change(keys, state, call)
  end
  if key_limits.ask_all(state, 'move', call.now_us, state) then
    -- Nobody has settled since.
    state.made_room = state.made_room or state.ticket > 0
  end
  recovery.note_call(state, call)
  recovery.end_past(state, call.now_ms)
  pause.end_past(state, call.now_ms)
  holds.end_lapsed(keys, state, call.now_ms, call)
  if is_idle(keys, state, call) then
    remove_idle(keys, state, call)
    return nil, state
  end
  for _, limit in ipairs(key_limits.roll_further(state, call.now_ms)) do
    if limit.has_boundary then
      key_limits.forget_ids(keys, limit)
      state.made_room = true
    end
  end
  if not state.own:is_current(call.now_ms) then
    begin_window(keys, state, call)
  end
  key_limits.ask_all(state, 'drop_ended_ids', keys)
  return state
end

-- A new instance, whose windows begin now. Approvals of an evicted or deleted state do not count. `idle`: the last
-- state of the instance before, if it is known. The approvals that it remembers stay known, and the tickets that it
-- gave show no loss. `rules`: by default those of the caller.
function instance.new(keys, call, idle, rules)
  local state = stored.new(call, idle, rules or call.rules)
  if idle then
    redis.call('UNLINK', keys.state)
    state.limits_changed_at = call.now_ms
    if call.now_ms < outage_ends(idle, call) then
      state.served = idle.served
    end
    if call.now_us <= idle.ticket then
      -- The clock has gone back. A waiter may still be put back with such a ticket.
      state.ticket = idle.ticket
    end
    state.ends = idle.ends
  end
  for _, limit in ipairs(state.limits) do
    if limit.name or not limit.takes_window then
      for _, name in ipairs(limit:built_names(keys)) do
        key_names.remove_leftover(name)
      end
    end
  end
  -- One command for all names: nearly no new key finds any of them.
  local has_leftovers = redis.call('EXISTS', keys.requests, keys.queue, keys.records, keys.replicas) > 0
  local has_requests = has_leftovers and redis.call('EXISTS', keys.requests) == 1
  past_requests.end_window(keys, state, call, ended_window((idle or state).own), has_requests)
  if #state.of_groups > 0 then
    group_limits.remove_leftovers(keys)
  end
  group_limits.begin(keys, state, call)
  if has_leftovers and not idle then
    -- Redis has lost the state that counted what was held. The first hold removes the times of the lapses.
    requests.forget_those(keys, requests.counts_as_held)
  end
  if has_leftovers and queue.read(keys, state, call).places > 0 then
    -- Only the lost state knew whether its queue is in order, that somebody has waited, and whether ids are their callers'.
    state.unsorted = 1
    state.ticket = queue.last_ticket(keys, state)
    requests.find_remembered(keys, state)
  end
  return state
end

-- `until_ms`: until when the state is needed, if nobody waits.
local function write_expiry(keys, state, call, until_ms)
  local has_queue = state.ticket > 0 and queue.read(keys, state, call).places > 0
  if has_queue then
    local leases = (LEASES_UNSETTLED + LEASES_KEPT) * call.lease
    until_ms = math.max(until_ms, call.now_ms + leases + replicas.longest_keep(state.tally))
  end
  local expire_at = digits(until_ms)
  if has_queue then
    redis.call('PEXPIREAT', keys.queue, expire_at)
    redis.call('PEXPIREAT', keys.replicas, expire_at)
    lists.expire(keys, state, expire_at)
  end
  redis.call('PEXPIREAT', keys.state, expire_at)
  past_requests.expire(keys, state, call, expire_at)
  requests.expire(keys, state, has_queue or stored.has_holds(state), expire_at)
  group_limits.expire(keys, state, expire_at)
  if stored.has_holds(state) then
    redis.call('PEXPIREAT', holds.built_name(keys), expire_at)
  end
end

-- Writes the changes, sets the expiry of every name that is new or may be needed for longer, and wakes the replicas that have to
-- learn of them.
function instance.close(keys, state, call)
  -- Before the state is written: a queue that is repaired begins a recovery, which may change whether there is news,
  -- and the state has the number of the last wake.
  if state.ticket > 0 and (state.rolled or state.needs_expiry) then
    queue.read(keys, state, call)
  end
  if state.groups then
    state.groups:write()
  end
  local is_due = is_wake_due(keys, state, call)
  if is_due then
    state.wake = state.wake + 1
  end
  if state.tally and state.tally.places > 0 then
    replicas.write(keys, state.tally)
  end
  stored.write(keys, state)
  local until_ms = keep_until(state, call)
  if state.rolled or state.needs_expiry or until_ms ~= state.kept_until then
    write_expiry(keys, state, call, until_ms)
  elseif state.remembered then
    past_requests.expire_new(keys, state, call, digits(until_ms))
  end
  if is_due then
    publish_wake(keys, state, call)
  end
end

-- Changes an instance by `act(keys, state, call)`, and serves the queue with the room that this makes. Returns what `act` returns.
-- If there is no such key, returns `not_found`, or begins one if that is nil.
function instance.change(names, arguments, not_found, act)
  local call, keys = calls.read(arguments), key_names.read(names, 1)
  local state, idle = instance.open(keys, call, stored.read(keys.state))
  if not state and not_found then
    return not_found
  end
  state = state or instance.new(keys, call, idle)
  local reply = act(keys, state, call)
  serving.serve(keys, state, call)
  instance.close(keys, state, call)
  return reply
end

return instance
