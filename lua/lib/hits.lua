-- The hits of the approvals of a window that take more than one: a hash beside the set of ids, id -> hits. The state's
-- field `hits` is 1 while the window may have such approvals, so that other keys need no look at it.
--
-- The name of the hash is built here, since few keys have it: a declared name costs Redis time in each call.

local ONE_HIT = 1

local function name_of_hits(keys)
  return keys.requests .. ':hits'
end

local function hits_of_list(all_hits, place)
  return all_hits and all_hits[place] or ONE_HIT
end

-- Records the hits of an approval that was just added to the set.
local function write_hits(keys, state, id, hits)
  if state.hits == 0 then
    set_more(state, 'hits', 1)
  end
  redis.call('HSET', name_of_hits(keys), id, digits(hits))
end

-- The hits of an id in the set.
local function read_hits(keys, state, id)
  local hits = state.hits == 1 and redis.call('HMGET', name_of_hits(keys), id)[1]
  return hits and tonumber(hits) or ONE_HIT
end

local function forget_hits(keys, state, id)
  if state.hits == 1 then
    redis.call('HDEL', name_of_hits(keys), id)
  end
end

-- The window has ended: no approval of it counts any more.
local function forget_all_hits(keys, state)
  if state.hits == 1 then
    redis.call('UNLINK', name_of_hits(keys))
    set_more(state, 'hits', 0)
  end
end
