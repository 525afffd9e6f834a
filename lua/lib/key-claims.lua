-- The claims of several limiter keys in one call: what a replica says of its requests, each an id and, if its caller has chosen
-- it, `#<number>` of its check.

local calls = require 'lib/calls'
local errors = require 'lib/errors'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local weight = require 'lib/weight'

local key_claims = {}

-- The id in a claim, and the owner that it names; nil if it names none.
function key_claims.parse(call, claim)
  local id, number = string.match(claim, '^([^#]*)#?(%d*)$')
  return id, number ~= '' and call.replica .. '#' .. number or nil
end

-- Calls `of_key(call, keys, claims)` for each key, and returns the replies, with the error of each key that fails. Keys after
-- those that take long have none. The arguments are as lua/withdraw.lua has them.
function key_claims.run(names, arguments, of_key)
  local call, replies = calls.read(arguments), {}
  local first_key, first_claim = 1, calls.FIRST_OWN + 1
  weight.begin()
  for size, limits in string.gmatch(arguments[calls.FIRST_OWN], '(%d+)=?(%S*)') do
    if weight.is_spent() then
      break
    end
    local next_claim = first_claim + tonumber(size)
    call.rules = limits == '' and call.default_rules or limits_text.parse(limits)
    local keys, claims = key_names.read(names, first_key), { unpack(arguments, first_claim, next_claim - 1) }
    replies[#replies + 1] = errors.reply_of(of_key, call, keys, claims)
    first_key, first_claim = first_key + key_names.PER_INSTANCE, next_claim
  end
  return replies
end

return key_claims
