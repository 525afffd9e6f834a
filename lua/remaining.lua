-- Takes a vendor's report of how much remains of a limit: what counts of it becomes at least its maximum less what remains,
-- until the vendor's limit resets. A report never makes room.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 the name of a further limit, or '' for the own one, 8 how much remains
--       9 the ms from now on until the vendor's limit resets, or '' for the end of the window
--       10 the id of a group (queue/lists) if the limit is one that each has to itself, else ''; 11 how many groups the key may have
-- Reply a JSON text: `remaining`, what is left of the limit now; or, if nothing counts and no key begins, `rejected`: `limit` if
--       there is no such limit, with `further`, the names of the key's further limits, if there are any; `algorithm` if the
--       limit has no windows, with its `algorithm`; or `key_full` if the key has no room for the group

local calls = require 'lib/calls'
local digits = require 'lib/digits'
local in_force = require 'lib/in-force'
local instance = require 'lib/instance'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local key_names = require 'lib/key-names'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

-- The reply if the limit takes no reports. `limits`: of a state or of rules.
local function rejection_of(limits, of_group, name)
  local limit = key_limits.named(limits, name) or key_limits.named(of_group, name)
  if not limit then
    local names = {}
    for _, some in ipairs({ { unpack(limits, 2) }, of_group }) do
      for _, each in ipairs(some) do
        names[#names + 1] = each.name
      end
    end
    return { rejected = 'limit', further = #names > 0 and names or nil }
  end
  return not kinds.has_boundary(limit) and { rejected = 'algorithm', algorithm = limit.algorithm } or nil
end

local function report(keys, state, call, limit, remaining, millis)
  limit:report(state, call, remaining, millis)
  state.expires = stored.idle_time(state)
  if limit.name then
    for _, name in ipairs(limit:built_names(keys)) do
      redis.call('PEXPIREAT', name, digits(limit:kept_until()))
    end
  end
end

local function run(KEYS, ARGV)
  local call, name = calls.read(ARGV), ARGV[calls.FIRST_OWN]
  local remaining, millis = tonumber(ARGV[calls.FIRST_OWN + 1]), tonumber(ARGV[calls.FIRST_OWN + 2])
  local keys = key_names.read(KEYS, 1)
  local state, idle = instance.open(keys, call, stored.read(keys.state))
  if state then
    in_force.take_for_waiters(keys, state, call)
  end
  local id = ARGV[calls.FIRST_OWN + 3]
  local known = state or call.rules
  local rejection = rejection_of(known.limits, id ~= '' and known.of_groups or {}, name)
  if rejection and not state then
    return cjson.encode(rejection)
  end
  state = state or instance.new(keys, call, idle)
  local group = id ~= '' and state.groups and state.groups:of(id)
  local limit = key_limits.named(state.limits, name) or group and key_limits.named(group.limits, name)
  call.max_groups = tonumber(ARGV[calls.FIRST_OWN + 4])
  if not rejection and limit.group and state.groups:is_full_for(id) then
    rejection = { rejected = 'key_full' }
  end
  if not rejection then
    if group then
      group.is_changed = true
    end
    report(keys, state, call, limit, remaining, millis)
  end
  serving.serve(keys, state, call)
  instance.close(keys, state, call)
  return cjson.encode(rejection or { remaining = math.max(0, limit.max - limit.used) })
end
