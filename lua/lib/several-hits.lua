-- The hits of the approvals of a window that take more than one: a hash beside the set of ids, id -> hits. The state's
-- field `hits` is 1 while the window may have such approvals, so that other keys need no look at it.
--
-- The name of the hash is built here, since few keys have it: a declared name costs Redis time in each call.

local digits = require 'lib/digits'
local stored = require 'lib/stored'

local several_hits = {}

function several_hits.name(keys)
  return keys.requests .. ':hits'
end

function several_hits.of_list(all_hits, place)
  return all_hits and all_hits[place] or 1
end

-- Records the hits of an approval that was just added to the set.
function several_hits.write(keys, state, id, hits)
  if state.hits == 0 then
    stored.set_more(state, 'hits', 1)
  end
  redis.call('HSET', several_hits.name(keys), id, digits(hits))
end

-- The hits of an id in the set.
function several_hits.read(keys, state, id)
  local hits = state.hits == 1 and redis.call('HMGET', several_hits.name(keys), id)[1]
  return hits and tonumber(hits) or 1
end

function several_hits.forget(keys, state, id)
  if state.hits == 1 then
    redis.call('HDEL', several_hits.name(keys), id)
  end
end

-- The window has ended: no approval of it counts any more.
function several_hits.forget_all(keys, state)
  if state.hits == 1 then
    redis.call('UNLINK', several_hits.name(keys))
    stored.set_more(state, 'hits', 0)
  end
end

return several_hits
