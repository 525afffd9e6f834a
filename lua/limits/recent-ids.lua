-- The ids of the approvals of a limit that does not end with its window: two hashes, one for each of the last two
-- generations, id -> `<mark>`, or `[<mark>,<hits>]` if the approval has not exactly one hit. The mark says when the hits were
-- taken, as the kind of the limit has it. A generation lasts as long as any approval counts, so that no id is needed for longer
-- than two.
--
-- `limit.generation` is the number of the current generation. The ids of the key's own limit are also among its requests,
-- which are remembered for late calls (lib/past-requests), unless they are held.
--
-- The names are built here: declared names cost Redis time in each call.

local digits = require 'lib/digits'
local own_ids = require 'limits/own-ids'

local recent_ids = {}

-- Built once in a call, since each name costs as much as a command.
function recent_ids.built_names(keys, limit)
  if not limit.id_names then
    local suffix = (limit.name and ':' .. limit.name or '') .. (limit.group and ':' .. limit.group.id or '')
    limit.id_names = { keys.state .. ':took:0' .. suffix, keys.state .. ':took:1' .. suffix }
  end
  return limit.id_names
end

-- The position of the name of a generation.
local function position_of(generation)
  return generation % 2 + 1
end

-- How many ids each name has. A call asks Redis once.
local function count_ids(keys, limit)
  if not limit.id_counts then
    local names = recent_ids.built_names(keys, limit)
    limit.id_counts = { redis.call('HLEN', names[1]), redis.call('HLEN', names[2]) }
  end
  return limit.id_counts
end

-- Drops the ids of the generations that are over. `limit.kept_generation` is the last one that has ids. Returns whether any is.
function recent_ids.drop_ended(keys, limit)
  local passed = limit.generation - limit.kept_generation
  if passed == 0 then
    return false
  elseif passed == 1 then
    redis.call('UNLINK', recent_ids.built_names(keys, limit)[position_of(limit.generation)])
  else
    redis.call('UNLINK', unpack(recent_ids.built_names(keys, limit)))
  end
  limit.kept_generation, limit.id_counts = limit.generation, nil
  return true
end

-- How many more ids may be kept. Those of a generation that is over do not count, also if a call that only looks has not
-- dropped them.
function recent_ids.free(keys, _, call, limit)
  local counts, free = count_ids(keys, limit), call.max_ids
  for generation = limit.generation - 1, limit.kept_generation do
    free = free - counts[position_of(generation)]
  end
  return free
end

-- What an id takes, its mark, and the position of the name that has it; nil if it is not there.
function recent_ids.find(keys, limit, id)
  local names, counts = recent_ids.built_names(keys, limit), limit.id_counts
  for i = 1, 2 do
    local text = (not counts or counts[i] > 0) and redis.call('HMGET', names[i], id)[1]
    if text then
      local mark = tonumber(text)
      if mark then
        return 1, mark, i
      end
      local hits
      mark, hits = unpack(cjson.decode(text))
      return hits, mark, i
    end
  end
end

local function format(mark, hits)
  return hits == 1 and digits(mark) or '[' .. digits(mark) .. ',' .. digits(hits) .. ']'
end

-- Adds an id. Returns false if it counts already.
function recent_ids.add(keys, state, call, limit, id, hits, is_held)
  local _, _, found_at = recent_ids.find(keys, limit, id)
  if found_at and limit:find(keys, state, id) then
    return false
  elseif found_at then
    -- Its approval has ended to count, and its caller has asked with it again.
    recent_ids.remove(keys, state, limit, id)
  end
  local counts, position = count_ids(keys, limit), position_of(limit.generation)
  local name = recent_ids.built_names(keys, limit)[position]
  redis.call('HSET', name, id, format(limit:mark(), hits))
  counts[position] = counts[position] + 1
  if counts[position] == 1 then
    redis.call('PEXPIREAT', name, digits(limit:kept_until()))
  end
  if not limit.name and not is_held then
    own_ids.remember(keys, state, call, id)
  end
  return true
end

-- Gives an id that is there other hits.
function recent_ids.write(keys, _, limit, id, hits)
  local _, mark, position = recent_ids.find(keys, limit, id)
  redis.call('HSET', recent_ids.built_names(keys, limit)[position], id, format(mark, hits))
end

-- Removes an id if it is there, unless a call only looks.
function recent_ids.remove(keys, _, limit, id)
  if keys.is_read_only then
    return
  end
  local _, _, position = recent_ids.find(keys, limit, id)
  if position then
    redis.call('HDEL', recent_ids.built_names(keys, limit)[position], id)
    limit.id_counts = nil
  end
end

return recent_ids
