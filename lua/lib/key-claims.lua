-- What a replica says of its requests of several limiter keys in one call.

local calls = require 'lib/calls'
local errors = require 'lib/errors'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local reads = require 'lib/reads'
local requests = require 'lib/requests'

local key_claims = {}

-- Calls `of_key(call, keys, claims, ids)` for each key, with the requests and their ids, and returns the replies, with the error of
-- each key that fails. Keys after those that take long have none. The arguments are as lua/withdraw.lua has them.
function key_claims.run(names, arguments, of_key)
  local call, replies = calls.read(arguments), {}
  reads.begin()
  for i, said in ipairs(cjson.decode(arguments[calls.FIRST_OWN])) do
    if reads.are_spent() then
      break
    end
    for _, claim in ipairs(said.requests) do
      requests.complete(call, claim)
    end
    call.rules = said.limits and limits_text.parse(said.limits) or call.default_rules
    local keys = key_names.read(names, (i - 1) * key_names.PER_INSTANCE + 1)
    replies[i] = errors.reply_of(of_key, call, keys, said.requests, requests.ids_of(said.requests))
  end
  return replies
end

return key_claims
