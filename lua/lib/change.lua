-- What the scripts that change one approval have in common.
--@include lib/instance

-- Changes an instance by `change(keys, state, call)`, and serves the queue with the room that this makes. Returns what
-- `change` returns, or `not_found` if there is no such key.
local function change_instance(names, arguments, not_found, change)
  local call = read_call(arguments)
  local keys = read_keys(names, 1)
  local state = open_instance(keys, call, read_state(keys.state))
  if not state then
    return not_found
  end
  local reply = change(keys, state, call)
  serve_waiting(keys, state, call)
  close_instance(keys, state, call)
  return reply
end
