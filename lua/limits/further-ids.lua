-- The ids of a further limit, which the rules list besides the key's own: a hash for each limit has the approvals of
-- its window, id -> what each takes. Held ids are in it only if the limit keeps what is released, since the others
-- count while they are held. A limit of a group has a hash for each group. Its name is built here: a declared name costs Redis time in each call.

local digits = require 'lib/digits'

local further_ids = {}

function further_ids.built_name(keys, limit)
  return keys.state .. ':took:0:' .. limit.name .. (limit.group and ':' .. limit.group.id or '')
end

function further_ids.built_names(keys, limit)
  return { further_ids.built_name(keys, limit) }
end

-- Whether the hash has as many ids as the limit counts: none is held or was carried over. Of hits it is not known.
function further_ids.have_one_each(state, limit)
  return limit.counts == 'requests' and state.first_lapse == 0 and limit.carried == 0
end

function further_ids.free(keys, _, call, limit)
  if limit.counts == 'requests' and limit.max <= call.max_ids then
    return math.huge
  end
  return call.max_ids - redis.call('HLEN', further_ids.built_name(keys, limit))
end

-- What an id takes; nil if it is not there.
function further_ids.find(keys, _, limit, id)
  local taken = redis.call('HMGET', further_ids.built_name(keys, limit), id)[1]
  return taken and tonumber(taken) or nil
end

-- Lets an id that is there take something else.
function further_ids.write(keys, state, limit, id, taken)
  redis.call('HSET', further_ids.built_name(keys, limit), id, digits(taken))
end

-- Adds an id. Returns how much more it takes than before: it may be there already.
function further_ids.add(keys, state, _, limit, id, taken)
  local before, name = further_ids.find(keys, state, limit, id), further_ids.built_name(keys, limit)
  further_ids.write(keys, state, limit, id, taken)
  if not before and redis.call('HLEN', name) == 1 then
    redis.call('PEXPIREAT', name, digits(limit:kept_until()))
  end
  return taken - (before or 0)
end

-- Removes an id, unless a call only looks.
function further_ids.remove(keys, _, limit, id)
  if not keys.is_read_only then
    redis.call('HDEL', further_ids.built_name(keys, limit), id)
  end
end

return further_ids
