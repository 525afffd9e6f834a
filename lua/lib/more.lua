-- Changes of the optional fields of a state: those of MORE in lib/stored.

local more = {}

function more.changed(state)
  state.has_more, state.changed = true, true
end

-- What counts of a limit has changed, and nothing else: no expiry follows from that (lib/instance), and few fields have to
-- be written (lib/stored).
function more.counted(state)
  state.counted = true
end

function more.set(state, field, value)
  state[field] = value
  more.changed(state)
end

return more
