-- Changes of the optional fields of a state: those of MORE in lib/stored.

local more = {}

function more.changed(state)
  state.has_more, state.changed = true, true
end

function more.set(state, field, value)
  state[field] = value
  more.changed(state)
end

return more
