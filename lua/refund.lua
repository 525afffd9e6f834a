-- Gives hits back without the approvals that took them, in the fixed windows of a key, and serves the queue.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 a JSON text: `hits`, how many at most, and `list`, the lane or group of the caller, as lib/requests has it: a limit that
--       does not count it gives nothing back
-- Reply how many hits the own limit has given back: no more than are approved and not held

local calls = require 'lib/calls'
local given_back = require 'lib/given-back'
local instance = require 'lib/instance'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local requests = require 'lib/requests'

local function run(KEYS, ARGV)
  return instance.change(KEYS, ARGV, 0, function(keys, state, call)
    local request = requests.complete(call, cjson.decode(ARGV[calls.FIRST_OWN]))
    return given_back.note_if_less(state, call, function()
      return key_limits.refund(keys, state, request.hits, lists.id_of(request.list))
    end)
  end)
end
