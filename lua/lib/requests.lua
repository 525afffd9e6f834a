-- What callers say of their requests, by the names of the API: `canWait`, `noPlace`, `hits`, `holdMillis`, `holder`, `list`,
-- `keepMillis`, `maxWaitMillis` and `takesRest`, each left out where it says nothing; and `number`, of the check among those of its
-- replica, if its caller has chosen the request id.

local digits = require 'lib/digits'
local lists = require 'queue/lists'

local requests = {}

-- Completes a request: with its hits, its list as queue/lists has it, and its `owner`, the check that it belongs to, if its caller
-- has chosen the id.
function requests.complete(call, request)
  request.hits = request.hits or 1
  request.list = lists.of_request(request.list)
  request.owner = request.number and call.replica .. '#' .. digits(request.number) or nil
  return request
end

local function copy_of(request)
  local copy = {}
  for name, value in pairs(request) do
    copy[name] = value
  end
  return copy
end

-- The requests of checks, by their ids. `said`: a list with what each says, or one for all of them.
function requests.of_checks(call, ids, said)
  local all = {}
  for i, id in ipairs(ids) do
    local request = said[i] or copy_of(said)
    request.requestId = id
    all[i] = requests.complete(call, request)
  end
  return all
end

return requests
