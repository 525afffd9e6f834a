-- The held approvals of a key as of now, in pages, and who holds them. Writes nothing. A hold that stays while all pages are
-- read is in one of them at least.
--
-- KEYS  1 state, 2 records, 3 lapses
-- ARGV  1 `0` for the first page, else the cursor that the page before has replied, 2 about how many holds a page has; a
--       small page has all
-- Reply a JSON text:
--         next  the cursor of the next page; left out after the last one
--         held  the holds, if there are any: `requestId`, `hits`, `lapseMillis`, the ms until it lapses, and, if its check has named
--               a label (lib/requests), that, and `heldMillis`, for how many ms it has been held

local holds = require 'lib/holds'
local now = require 'lib/now'
local requests = require 'lib/requests'
local stored = require 'lib/stored'

local LAST_PAGE = '0'

local function describe(request, lapses, now_ms)
  local shown = { requestId = request.requestId, hits = holds.hits_of(request), lapseMillis = lapses - now_ms }
  -- The clock may have gone back.
  shown.heldMillis = request.since and math.max(0, now_ms - request.since)
  for _, label in ipairs(requests.LABELS) do
    shown[label] = request[label]
  end
  return shown
end

local function run(KEYS, ARGV)
  local keys, now_ms = { state = KEYS[1], records = KEYS[2] }, math.floor(now.micros() / 1000)
  local state = stored.read(keys.state)
  if not state or not stored.has_holds(state) then
    return cjson.encode({})
  end
  local cursor, page = unpack(redis.call('ZSCAN', KEYS[3], ARGV[1], 'COUNT', ARGV[2]))
  local ids, held = {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1] = page[i]
  end
  local found = requests.find_all(keys, state, ids)
  local lapses = holds.lapses_of(keys, found, now_ms)
  for _, id in ipairs(ids) do
    if lapses[id] and lapses[id] > now_ms then
      held[#held + 1] = describe(found[id], lapses[id], now_ms)
    end
  end
  return cjson.encode({ next = cursor ~= LAST_PAGE and cursor or nil, held = #held > 0 and held or nil })
end
