-- The entries of a queue, `<ticket>:<request id>@<replica id>`. In a key with several lists (queue/lists), `<list> ` before the
-- ticket. What else is known of a waiter is in its record (lib/requests).
--
-- A ticket is the time of arrival in Redis's microseconds, raised if needed, so that no ticket is given out twice.
-- Tickets keep the order of arrival, also when a replica puts its waiters back after Redis lost its memory. They have
-- sixteen digits until the year 2286, so tickets and entries sort as texts. In a group with lanes, an entry starts with the
-- ticket less the head start of its lane.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local reads = require 'lib/reads'
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

-- The ticket in the entry of a waiter.
local function ticket_in_entry(waiter)
  local list, ticket = waiter.list, waiter.ticket
  if list and list.headStartMillis and list.kind == 'group' then
    return entries.format_ticket(tonumber(ticket) - list.headStartMillis * 1000)
  end
  return ticket
end

-- What an entry begins with, after its list.
function entries.start_of(waiter)
  return ticket_in_entry(waiter) .. ':' .. waiter.requestId
end

function entries.format(waiter, replica_id)
  return entries.start_of(waiter) .. '@' .. replica_id
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
    if request and request.state == requests.WAITING and ticket_in_entry(request) == entry.ticket and not seen[entry.requestId] then
      request.text, request.replica_id, request.is_waiting = entry.text, request.replica_id or entry.replica_id, true
      read[i], seen[entry.requestId] = request, true
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

-- The order of a key's waiters, unless it has several lists: a list of entries, first come, first served. Entries of withdrawn
-- waiters stay in it until they come to its head, so that no script searches the list.

-- How many entries there are; nil if the queue has several lists, which only the state knows.
function entries.length(keys)
  local length = redis.pcall('LLEN', keys.queue)
  return type(length) == 'number' and length or nil
end

function entries.first(keys, most)
  return reads.add(redis.call('LRANGE', keys.queue, '0', digits(most - 1)), 1)
end

function entries.all(keys)
  return reads.add(redis.call('LRANGE', keys.queue, 0, -1), 1)
end

-- The ticket of an entry, as a text, from the head on or, below 0, from the end; false if there is none.
function entries.ticket_at(keys, index)
  local entry = redis.call('LINDEX', keys.queue, index)
  return entry and entries.ticket_of(entry)
end

-- Keeps only the entries of waiters. `waiters`: of all entries, in their order.
function entries.keep(keys, waiters)
  local kept = {}
  for _, waiter in ipairs(waiters) do
    kept[#kept + 1] = waiter.is_waiting and waiter.text or nil
  end
  redis.call('UNLINK', keys.queue)
  chunks.call('RPUSH', keys.queue, kept)
end

function entries.sort(keys)
  reads.read = reads.read + redis.call('SORT', keys.queue, 'ALPHA', 'STORE', keys.queue)
end

-- A walk over the waiters in the order of their turns, which changes nothing until it is written.
local fifo_walk = {}
fifo_walk.__index = fifo_walk

function entries.walk(keys, most)
  return setmetatable({ keys = keys, entries = entries.read(keys, entries.first(keys, most)), taken = 0 }, fifo_walk)
end

-- The next entry; nil if there is none, or the one before it was stopped.
function fifo_walk:next()
  return not self.is_stopped and self.entries[self.taken + 1] or nil
end

function fifo_walk:take()
  self.taken = self.taken + 1
end

-- The next entry waits on, and nobody passes it.
function fifo_walk:stop()
  self.is_stopped = true
end

function fifo_walk:write()
  redis.call('LTRIM', self.keys.queue, digits(self.taken), '-1')
end

return entries
