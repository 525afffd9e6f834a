-- Where a request waits whose id its caller has chosen. Writes nothing.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them, 7 the request id
-- Reply 1 its position, 1 for the head of the queue: see `queue.count_before`, 2 the fewest microseconds until its turn, if nobody
--       leaves the queue and nothing is released before; nothing if it does not wait

local calendars = require 'lib/calendars'
local calls = require 'lib/calls'
local key_names = require 'lib/key-names'
local look = require 'lib/look'
local named_requests = require 'lib/named-requests'
local queue = require 'queue/queue'
local room = require 'lib/room'
local weight = require 'lib/weight'

local function run(KEYS, ARGV)
  local call, keys, id = calls.read(ARGV), key_names.read(KEYS, 1), ARGV[calls.FIRST_OWN]
  weight.begin()
  call.only_looks = true
  calendars.require_current(call)
  local ticket = redis.call('HMGET', keys.waiting, id)[1]
  local state, tally = look.at(keys, call.now_us, call)
  local record = ticket and state and named_requests.find(keys, id)
  if not record then
    return {}
  end
  local before = queue.count_before(keys, state, tally, call.now_ms, ticket)
  local micros = room.micros_to_turn(keys, state, call, before, record.hits)
  -- With a maximum of 0 no turn ever comes.
  return { before + 1, micros < math.huge and math.max(0, micros) or room.micros_to(keys, state, call) }
end
