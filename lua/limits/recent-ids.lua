-- The ids of the approvals of a limit that does not end with its window: two hashes, one for each of the last two
-- generations, id -> `<mark>[*<hits>]`. The mark says when the hits were taken, as the kind of the limit has it. A
-- generation lasts as long as any approval counts, so that no id is needed for longer than two.
--
-- `limit.generation` is the number of the current generation. The ids of the key's own limit are also among its requests,
-- which are remembered for late calls (lib/past-requests), unless they are held.
--
-- The names are built here: declared names cost Redis time in each call.

local digits = require 'lib/digits'
local more = require 'lib/more'
local own_ids = require 'limits/own-ids'

local recent_ids = {}

-- Built once in a call, since each name costs as much as a command.
function recent_ids.built_names(keys, limit)
  if not limit.id_names then
    local name = keys.state .. (limit.name and ':limit:' .. limit.name or ':ids')
    limit.id_names = { name .. ':0', name .. ':1' }
  end
  return limit.id_names
end

local function name_of(keys, limit, generation)
  return recent_ids.built_names(keys, limit)[generation % 2 + 1]
end

-- Drops the ids of the generations that are over. `limit.kept_generation` is the last one that has ids.
function recent_ids.drop_ended(keys, state, limit)
  local passed = limit.generation - limit.kept_generation
  if passed == 0 then
    return
  elseif passed == 1 then
    redis.call('UNLINK', name_of(keys, limit, limit.generation))
  else
    redis.call('UNLINK', unpack(recent_ids.built_names(keys, limit)))
  end
  limit.kept_generation = limit.generation
  more.changed(state)
end

-- How many more ids may be kept. Those of a generation that is over do not count, also if a call that only looks has not
-- dropped them.
function recent_ids.free(keys, call, limit)
  local free = call.max_ids
  for generation = limit.generation - 1, limit.kept_generation do
    free = free - redis.call('HLEN', name_of(keys, limit, generation))
  end
  return free
end

-- The hits of an id, its mark, and the name of its hash; nil if it is not there.
local function find(keys, limit, id)
  for _, name in ipairs(recent_ids.built_names(keys, limit)) do
    local text = redis.call('HMGET', name, id)[1]
    if text then
      local mark, hits = string.match(text, '^(%d+)%*?(%d*)$')
      return tonumber(hits) or 1, tonumber(mark), name
    end
  end
end

-- Returns what an id takes, and its mark; nil if it is not there.
function recent_ids.find(keys, limit, id)
  local hits, mark = find(keys, limit, id)
  return hits, mark
end

local function format(mark, hits)
  return hits == 1 and digits(mark) or digits(mark) .. '*' .. digits(hits)
end

-- Adds an id. Returns false if it is there already.
function recent_ids.add(keys, state, call, limit, id, mark, hits, is_held)
  if find(keys, limit, id) then
    return false
  end
  local name = name_of(keys, limit, limit.generation)
  redis.call('HSET', name, id, format(mark, hits))
  if redis.call('HLEN', name) == 1 then
    redis.call('PEXPIREAT', name, digits(limit:kept_until()))
  end
  if not limit.name and not is_held then
    own_ids.remember(keys, state, call, id)
  end
  return true
end

-- Gives an id that is there other hits.
function recent_ids.write(keys, limit, id, hits)
  local _, mark, name = find(keys, limit, id)
  redis.call('HSET', name, id, format(mark, hits))
end

-- Removes an id that is there.
function recent_ids.remove(keys, limit, id)
  local _, _, name = find(keys, limit, id)
  redis.call('HDEL', name, id)
end

return recent_ids
