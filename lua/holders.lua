-- The held approvals of a key as of now, in pages, and who holds them. Writes nothing. A hold that stays while all pages are
-- read is in one of them at least.
--
-- KEYS  1 state, 2 holds, 3 holders
-- ARGV  1 `0` for the first page, else the cursor that the page before has replied, 2 about how many holds a page has; the
--       page of a small hash has all
-- Reply a JSON text:
--         next  the cursor of the next page; left out after the last one
--         held  the holds, if there are any: `requestId`, `hits`, `lapseMillis`, the ms until it lapses, and, if its check has named
--               a holder, `holder`, and `heldMillis`, for how many ms it has been held

local chunks = require 'lib/chunks'
local holders = require 'lib/holders'
local holds = require 'lib/holds'
local now = require 'lib/now'
local stored = require 'lib/stored'

local LAST_PAGE = '0'

-- By the rules of an earlier version, the user may not read a part of a hash. Then one page has all.
local function read_page(name, cursor, size)
  local reply = redis.pcall('HSCAN', name, cursor, 'COUNT', size)
  if reply.err and string.find(reply.err, "can't run this command", 1, true) then
    return LAST_PAGE, redis.call('HGETALL', name)
  elseif reply.err then
    reply = redis.call('HSCAN', name, cursor, 'COUNT', size)
  end
  return reply[1], reply[2]
end

-- The values of the holders of a page, in its order.
local function read_holders(name, page)
  local ids = {}
  for i = 1, #page, 2 do
    ids[#ids + 1] = page[i]
  end
  return chunks.list('HMGET', name, ids)
end

local function run(KEYS, ARGV)
  local now_ms = math.floor(now.micros() / 1000)
  local state = stored.read(KEYS[1])
  if not state or not stored.has_holds(state) then
    return cjson.encode({})
  end
  local cursor, page = read_page(KEYS[2], ARGV[1], ARGV[2])
  local of_page = read_holders(KEYS[3], page)
  local held = {}
  for i = 1, #page, 2 do
    local lapses, millis, hits = holds.parse(page[i + 1])
    if lapses > now_ms then
      local holder, since = holders.parse(of_page[(i + 1) / 2])
      held[#held + 1] = {
        -- The clock may have gone back.
        requestId = page[i], hits = hits, lapseMillis = math.min(lapses - now_ms, millis),
        holder = holder, heldMillis = holder and math.max(0, now_ms - since),
      }
    end
  end
  return cjson.encode({ next = cursor ~= LAST_PAGE and cursor or nil, held = #held > 0 and held or nil })
end
