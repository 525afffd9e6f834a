-- What the scripts that change one approval have in common.

local calls = require 'lib/calls'
local instance = require 'lib/instance'
local key_names = require 'lib/key-names'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

local change = {}

-- Changes an instance by `change(keys, state, call)`, and serves the queue with the room that this makes. Returns what
-- `change` returns, or `not_found` if there is no such key.
function change.apply(names, arguments, not_found, act)
  local call = calls.read(arguments)
  local keys = key_names.read(names, 1)
  local state = instance.open(keys, call, stored.read(keys.state))
  if not state then
    return not_found
  end
  local reply = act(keys, state, call)
  serving.serve(keys, state, call)
  instance.close(keys, state, call)
  return reply
end

return change
