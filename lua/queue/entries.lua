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

-- The ticket of an entry of the only list, as a text.
function entries.ticket_of(entry)
  return string.sub(entry, 1, entries.TICKET)
end

-- Splits an entry into its list, or '', and the rest.
function entries.split_list(entry)
  local list, rest = string.match(entry, '^(%l+:%S*) (.*)$')
  return list or '', rest or entry
end

-- The entry of a waiter in the only list.
function entries.format(waiter, replica_id)
  return waiter.ticket .. ':' .. waiter.requestId .. '@' .. replica_id
end

-- The waiters of entries: their requests, with `text`, the entry, `replica_id`, under which their places count, and `is_waiting`,
-- false for an entry whose waiter is withdrawn, or has another place.
function entries.read(keys, texts)
  local read, ids = {}, {}
  for i, text in ipairs(texts) do
    local _, rest = entries.split_list(text)
    local ticket, id, replica_id = string.match(rest, '^(%d+):([^@]*)@(.*)$')
    read[i], ids[i] = { text = text, ticket = ticket, requestId = id, replica_id = replica_id, hits = 1 }, id
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

return entries
