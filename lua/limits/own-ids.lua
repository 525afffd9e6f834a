-- The ids of a key's own limit: a set of the ids approved in its window. Those with more than one hit are also in a
-- hash beside it, id -> hits. The state's field `hits` is 1 while the window may have any of these, or more ids than hits after
-- a refund, so that other keys need no look at the hash. lib/past-requests has the ids of windows that have ended.
--
-- The name of the hash is built here, since few keys have it: a declared name costs Redis time in each call.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local generations = require 'lib/generations'
local key_names = require 'lib/key-names'

local own_ids = {}

-- The name of the hash.
function own_ids.built_name(keys)
  return keys.state .. ':took:0'
end

function own_ids.built_names(keys)
  return { own_ids.built_name(keys) }
end

-- Whether the set has as many ids as the window has hits: no approval has several, is held, was refunded, or was carried over,
-- and no report is in force.
function own_ids.have_one_each(state)
  local own = state.own
  return state.hits == 0 and state.first_lapse == 0 and own.ids == own_ids and own.carried == 0 and own.surplus == 0
end

function own_ids.free(keys, state, call)
  return call.max_ids - (own_ids.have_one_each(state) and state.own.used or redis.call('SCARD', keys.requests))
end

-- The window has an approval with other hits than one, or ids whose hits were given back.
function own_ids.note_other_hits(keys, state)
  if state.hits == 0 then
    key_names.remove_leftover(own_ids.built_name(keys))
    state.hits = 1
  end
end

local function write_hits(keys, state, id, hits)
  state.needs_expiry = true
  own_ids.note_other_hits(keys, state)
  redis.call('HSET', own_ids.built_name(keys), id, digits(hits))
end

local function forget_hits(keys, state, id)
  if state.hits == 1 then
    redis.call('HDEL', own_ids.built_name(keys), id)
  end
end

-- Remembers an id. Returns false if it is there already.
function own_ids.remember(keys, state, call, id)
  if redis.call('SADD', keys.requests, id) == 0 then
    return false
  end
  state.remembered = (state.remembered or 0) + 1
  if generations.current_shares_set(state, call) then
    redis.call('SADD', keys.past_requests[state.generation], id)
  end
  return true
end

-- Adds an id. Returns its hits, or 0 if it is there already.
function own_ids.add(keys, state, call, _, id, hits)
  if not own_ids.remember(keys, state, call, id) then
    return 0
  end
  if hits ~= 1 then
    write_hits(keys, state, id, hits)
  end
  return hits
end

-- Adds ids with one hit each. Returns how many were not there.
function own_ids.add_all(keys, state, call, ids)
  if generations.current_shares_set(state, call) then
    chunks.call('SADD', keys.past_requests[state.generation], ids)
  end
  local added = chunks.call('SADD', keys.requests, ids)
  state.remembered = (state.remembered or 0) + added
  return added
end

-- The hits of an id; nil if it is not there.
function own_ids.find(keys, state, _, id)
  if redis.call('SMISMEMBER', keys.requests, id)[1] == 0 then
    return nil
  end
  local hits = state.hits == 1 and redis.call('HMGET', own_ids.built_name(keys), id)[1]
  return hits and tonumber(hits) or 1
end

function own_ids.remove(keys, state, _, id)
  redis.call('SREM', keys.requests, id)
  forget_hits(keys, state, id)
end

-- Removes ids with one hit each. Returns how many there were.
function own_ids.remove_all(keys, ids)
  return chunks.call('SREM', keys.requests, ids)
end

-- Gives an id that is there other hits.
function own_ids.write(keys, state, _, id, hits, before)
  if hits == before then
    return
  elseif hits == 1 then
    forget_hits(keys, state, id)
  else
    write_hits(keys, state, id, hits)
  end
end

-- The window has ended: no approval of it has several hits any more.
function own_ids.forget_hits_of_all(keys, state)
  if state.hits == 1 then
    redis.call('UNLINK', own_ids.built_name(keys))
    state.hits = 0
  end
end

return own_ids
