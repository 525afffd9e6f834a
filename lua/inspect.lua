-- The states of keys as of now. Writes nothing. A window that has ended counts as empty, and a key that has
-- been idle for too long as removed. Waiters of dead replicas do not count.
--
-- KEYS  per key: 1 state, 2 records, 3 replicas
-- ARGV  none
-- Reply per key, in their order, a JSON text, or '' if there is no such key:
--         limits        the limits in force, as lib/limits-text has them
--         counted       for each limit: `used`, what counts of it, held approvals included, `millisToWindowEnd`, and of a calendar
--                       `windowMillis`, the length of its window
--         denied        the denials of the window
--         waiting       how many wait
--         held          the hits of the held approvals
--         pausedMillis  ms until its pause ends, or 0
--       A key that fails, such as one of a wrong type, has its error in that place. The first key has a reply at
--       least. Keys after those that take long to read have none, and are left to the next call (lib/reads)

local errors = require 'lib/errors'
local now = require 'lib/now'
local reads = require 'lib/reads'
local snapshot = require 'lib/snapshot'

local NAMES_PER_KEY = 3

local function inspect(names, now_us)
  local state, _, waiting = snapshot.at(names, now_us)
  return state and cjson.encode(snapshot.describe(state, waiting, math.floor(now_us / 1000))) or ''
end

local function run(KEYS, ARGV)
  local now_us, replies = now.micros(), {}
  reads.begin()
  for first = 1, #KEYS, NAMES_PER_KEY do
    if reads.are_spent() then
      break
    end
    local names = { state = KEYS[first], records = KEYS[first + 1], replicas = KEYS[first + 2] }
    replies[#replies + 1] = errors.reply_of(inspect, names, now_us)
  end
  return replies
end
