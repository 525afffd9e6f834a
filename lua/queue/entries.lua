-- The entries of a queue, `<ticket>:<request id>@<replica id>`; after the id, `*<hits>` if the waiter needs more than one
-- hit, and `~<ms>` if its approval will be held. In a key with several lists (queue/lists), `<list> ` before the ticket,
-- and, if the list is a lane or a group, `^<its head start in ms, or its weight>` before the `@`.
--
-- A ticket is the time of arrival in Redis's microseconds, raised if needed, so that no ticket is given out twice.
-- Tickets keep the order of arrival, also when a replica puts its waiters back after Redis lost its memory. They have
-- sixteen digits until the year 2286, so entries sort as texts.

local digits = require 'lib/digits'

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

-- Returns ticket, request id, replica id, hits, if the approval will be held, for how many ms, the list or '', and its
-- parameter, if it has one.
function entries.split(entry)
  local list, rest = entries.split_list(entry)
  local ticket, request_id, hits, hold, parameter, replica_id =
    string.match(rest, '^(%d+):([^@*~^]*)%*?(%d*)~?(%d*)%^?(%d*)@(.*)$')
  return ticket, request_id, replica_id, tonumber(hits) or 1, tonumber(hold), list, tonumber(parameter)
end

-- `ticket`: as a text.
function entries.format(ticket, waiter, replica_id)
  local hits = waiter.hits == 1 and '' or '*' .. digits(waiter.hits)
  local hold = waiter.holdMillis and '~' .. digits(waiter.holdMillis) or ''
  local parameter = waiter.list and '^' .. digits(waiter.list.parameter) or ''
  return ticket .. ':' .. waiter.requestId .. hits .. hold .. parameter .. '@' .. replica_id
end

return entries
