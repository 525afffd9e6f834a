-- The names of one instance, in the order in which all scripts that change it get them.
local KEYS_PER_INSTANCE = 8

local function read_keys(names, first)
  return {
    state = names[first],
    requests = names[first + 1],
    queue = names[first + 2],
    waiting = names[first + 3],
    replicas = names[first + 4],
    -- By turn, a set of ids approved in windows that have ended.
    past_requests = { names[first + 5], names[first + 6], names[first + 7] },
  }
end
