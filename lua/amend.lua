-- Changes the hits of an approval that still counts, renews its hold, or both, and serves the queue if that makes room.
-- More hits may exceed the maximum: then nobody is approved until there is room again.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 request id, 8 its hits from now on, or '', 9 the length of its hold in ms from now on, or ''
--       10 the most hits that it may get, or '' for ten times the maximum; it may keep what it has
--       11 the longest hold that is renewed, in ms. A longer one lapses when it would have, also if its hits are corrected
-- Reply the ms until the hold lapses, or -1 if the approval counts in its window only, or -2: the id is unknown, was
--       released, was approved in a window that has ended, or its hold has lapsed; or the call is about its hold alone,
--       and the approval is not held; -3: the call is about the hold alone, and that is too long; -4 less the most hits
--       that the approval may get: it would get more. Nothing is changed then

local calls = require 'lib/calls'
local given_back = require 'lib/given-back'
local holds = require 'lib/holds'
local instance = require 'lib/instance'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local requests = require 'lib/requests'

local REPLY = { OF_WINDOW = -1, NOT_FOUND = -2, HOLD_TOO_LONG = -3, TOO_MANY_HITS = -4 }
-- More is no estimate that was too low, and would close the key for everybody.
local MOST_TIMES_MAXIMUM = 10

local function run(KEYS, ARGV)
  local id, hits, hold = ARGV[calls.FIRST_OWN], tonumber(ARGV[calls.FIRST_OWN + 1]), tonumber(ARGV[calls.FIRST_OWN + 2])
  local most_hits, longest_hold = tonumber(ARGV[calls.FIRST_OWN + 3]), tonumber(ARGV[calls.FIRST_OWN + 4])
  return instance.change(KEYS, ARGV, REPLY.NOT_FOUND, function(keys, state, call)
    local request = requests.has_any(state) and requests.find(keys, state, id)
    if request and requests.is_undecided(request) then
      -- Nobody has got the approval yet.
      return REPLY.NOT_FOUND
    end
    local is_held, list = request and requests.counts_as_held(request), request and lists.id_of(request.list)
    local most = most_hits or MOST_TIMES_MAXIMUM * state.own.max
    if hits and hits > most then
      local before = is_held and holds.hits_of(request) or key_limits.taken_by(keys, state, id, list)
      if before and hits > before then
        return REPLY.TOO_MANY_HITS - math.max(most, before)
      end
    end
    if is_held then
      return holds.renew(keys, state, call, request, hold, hits, longest_hold) or REPLY.HOLD_TOO_LONG
    end
    local is_amended = hits and not hold and given_back.note_if_less(state, call, function()
      return key_limits.amend(keys, state, id, list, hits, false)
    end)
    return is_amended and REPLY.OF_WINDOW or REPLY.NOT_FOUND
  end)
end
