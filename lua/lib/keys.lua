-- The names of one instance, in the order in which all scripts that change it get them.
local KEYS_PER_INSTANCE = 8
-- How many of them a plain check gets: the first ones if the window goes on; these and the past requests if it may
-- begin a window.
local NAMES_IN_WINDOW, NAMES_FOR_NEW_WINDOW = 2, 5
-- Their positions after the first name, which is that of the state.
local REQUESTS, QUEUE, WAITING, REPLICAS, PAST_REQUESTS = 1, 2, 3, 4, 5

local function read_keys(names, first)
  return {
    state = names[first],
    requests = names[first + REQUESTS],
    queue = names[first + QUEUE],
    waiting = names[first + WAITING],
    replicas = names[first + REPLICAS],
    -- By turn, a set of ids approved in windows that have ended.
    past_requests = {
      names[first + PAST_REQUESTS], names[first + PAST_REQUESTS + 1], names[first + PAST_REQUESTS + 2],
    },
  }
end
