-- The entries of a queue, `<ticket>:<request id>@<replica id>`. In a key with several lists (queue/lists), `<list> ` before the
-- ticket. What else is known of a waiter is in its record (lib/requests).
--
-- A ticket is the time of arrival in Redis's microseconds, raised if needed, so that no ticket is given out twice.
-- Tickets keep the order of arrival, also when a replica puts its waiters back after Redis lost its memory. They have
-- sixteen digits until the year 2286, so tickets and entries sort as texts.

local requests = require 'lib/requests'

local entries = { TICKET = 16 }

function entries.format_ticket(ticket)
  return string.format('%016.0f', ticket)
end

-- Where the ticket of an entry begins, after its list and a space if it has one.
local function start_of_ticket(entry)
  return (string.find(entry, ' ', 1, true) or 0) + 1
end

function entries.list_of(entry)
  return string.sub(entry, 1, start_of_ticket(entry) - 2)
end

function entries.ticket_of(entry)
  local start = start_of_ticket(entry)
  return string.sub(entry, start, start + entries.TICKET - 1)
end

function entries.format(waiter, replica_id)
  return waiter.ticket .. ':' .. waiter.requestId .. '@' .. replica_id
end

-- The waiters of entries: their requests, with `text`, the entry, `replica_id`, under which their places count, and `is_waiting`,
-- false for an entry whose waiter is withdrawn, or has another place.
function entries.read(keys, texts)
  local read, ids = {}, {}
  for i, text in ipairs(texts) do
    local start_of_id = start_of_ticket(text) + entries.TICKET + 1
    local separator = string.find(text, '@', start_of_id, true)
    ids[i] = string.sub(text, start_of_id, separator - 1)
    read[i] = {
      text = text, ticket = entries.ticket_of(text), requestId = ids[i], replica_id = string.sub(text, separator + 1), hits = 1,
    }
  end
  local found, seen = requests.find_all(keys, nil, ids), {}
  for i, entry in ipairs(read) do
    local request = found[entry.requestId]
    if request and request.state == requests.WAITING and request.ticket == entry.ticket and not seen[entry.ticket] then
      request.text, request.replica_id, request.is_waiting = entry.text, request.replica_id or entry.replica_id, true
      read[i], seen[entry.ticket] = request, true
    end
  end
  return read
end

-- Those that wait.
function entries.read_waiting(keys, texts)
  local waiting = {}
  for _, entry in ipairs(entries.read(keys, texts)) do
    waiting[#waiting + 1] = entry.is_waiting and entry or nil
  end
  return waiting
end

return entries
