-- The names of one instance, in the order in which all scripts that change it get them, and the values under the first.

local key_names = {}

key_names.PER_INSTANCE = 8
-- How many of them a plain check gets: the first ones if the window goes on; these and the past requests if it may
-- begin a window.
key_names.IN_WINDOW = 2
key_names.FOR_NEW_WINDOW = 5
-- Their positions after the name of the state, which is the first.
key_names.REQUESTS = 1
local QUEUE, RECORDS, REPLICAS, PAST_REQUESTS = 2, 3, 4, 5

function key_names.read(names, first)
  return {
    state = names[first],
    requests = names[first + key_names.REQUESTS],
    queue = names[first + QUEUE],
    records = names[first + RECORDS],
    replicas = names[first + REPLICAS],
    -- By generation, a set of ids approved in windows that have ended.
    past_requests = {
      names[first + PAST_REQUESTS], names[first + PAST_REQUESTS + 1], names[first + PAST_REQUESTS + 2],
    },
  }
end

-- A name in the slot of a key under which nothing is stored: `probeName` in src/redis/shared/key-names.ts.
function key_names.never_there(state)
  return state .. ':probe'
end

-- Removes a name that may be left from a state that Redis has lost. If there is none, an UNLINK would let a new key
-- into a full memory (lib/stored).
function key_names.remove_leftover(name)
  if redis.call('EXISTS', name) == 1 then
    redis.call('UNLINK', name)
  end
end

-- The stored values. The second is false if there is no state.

-- Those that a check in mid-window needs. Each value more costs nearly all checks.
function key_names.read_values_in_window(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'extra', 'denied')
end

-- Without what the limits of some kinds store, which is the seventh value.
function key_names.read_values(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'extra', 'denied', 'gen')
end

-- Returns all values: the same, and the field `own`.
function key_names.read_all_values(state_key)
  return redis.call('HMGET', state_key, 'start', 'limits', 'approved', 'extra', 'denied', 'gen', 'own')
end

return key_names
