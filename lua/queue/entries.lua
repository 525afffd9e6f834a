-- The entries of a queue's list, `<ticket>:<request id>@<replica id>`; after the id, `*<hits>` if the waiter needs more
-- than one hit, and `~<ms>` if its approval will be held.
--
-- A ticket is the time of arrival in Redis's microseconds, raised if needed, so that no ticket is given out twice.
-- Tickets keep the order of arrival, also when a replica puts its waiters back after Redis lost its memory. They have
-- sixteen digits until the year 2286, so entries sort as texts.

local digits = require 'lib/digits'

local entries = {}

function entries.format_ticket(ticket)
  return string.format('%016.0f', ticket)
end

-- The ticket of an entry, as a text.
function entries.ticket_of(entry)
  return string.sub(entry, 1, 16)
end

-- Returns ticket, request id, replica id, hits and, if the approval will be held, for how many ms.
function entries.split(entry)
  local ticket, request_id, hits, hold, replica_id = string.match(entry, '^(%d+):([^@*~]*)%*?(%d*)~?(%d*)@(.*)$')
  return ticket, request_id, replica_id, tonumber(hits) or 1, tonumber(hold)
end

-- `ticket`: as a text.
function entries.format(ticket, waiter, replica_id)
  local hits = waiter.hits == 1 and '' or '*' .. digits(waiter.hits)
  local hold = waiter.hold and '~' .. digits(waiter.hold) or ''
  return ticket .. ':' .. waiter.request_id .. hits .. hold .. '@' .. replica_id
end

return entries
