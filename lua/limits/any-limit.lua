-- What the kinds of limits have in common. limits/fixed-window says which questions a kind answers, and what a limit has. A kind is
-- `like` this one, or like another kind: it has the functions and values of that which it has not itself.

local held = require 'limits/held'
local window = require 'limits/window'

-- What a level that drains may lack by the rounding of doubles. Others are whole numbers.
local EPSILON = 1e-9

-- `counts_held`: held approvals count while they are held. A kind without that takes them once, when they are given.
local any_limit = { counts_held = true, EPSILON = EPSILON }

-- Gives a kind what it is like, so that no call looks in two tables. `pairs` is missing while Redis loads a function.
local function complete(kind)
  local like = kind.like
  while like do
    for name, value in pairs(like) do
      if kind[name] == nil then
        kind[name] = value
      end
    end
    like = like.like
  end
  kind.__index = kind
end

-- A limit of a kind with nothing approved. `declared`: by lib/limits-text. `ids`: where the ids of its approvals are.
function any_limit.begin(kind, declared, start, ids)
  if kind.__index ~= kind then
    complete(kind)
  end
  return setmetatable({
    name = declared.name, window = declared.window, max = declared.max, counts = declared.counts, keeps = declared.keeps,
    lanes = declared.lanes, lanes_text = declared.lanes_text, maxima = declared.maxima, algorithm = declared.algorithm, parameter = declared.parameter,
    start = start, used = 0, ids = ids,
  }, kind)
end

-- When its window or its period ends, in ms since 1970.
function any_limit:ends()
  return self.start + self.window
end

-- How long that is, in ms.
function any_limit:length()
  return self.window
end

function any_limit:is_current(now_ms)
  return window.is_current(self.start, self.window, now_ms)
end

-- Moves to the window or the period that holds `now_ms`. Returns whether another one begins.
function any_limit:roll(_, now_ms)
  if self:is_current(now_ms) then
    return false
  end
  self.start = window.start_of(self.start, self.window, now_ms)
  return true
end

-- Drops the ids of approvals that do not count any more, inside of a period.
function any_limit:drop_ended_ids()
end

-- The queue is served, perhaps later than there was room.
function any_limit:begin_serving()
end

function any_limit:end_serving()
end

-- What an approval takes.
function any_limit:taken_of(hits)
  return self.counts == 'hits' and hits or 1
end

-- Whether approvals count because they are held. A limit that keeps what is released counts them as all others.
function any_limit:has_holds()
  return self.counts_held and not self.keeps
end

function any_limit:held(state)
  return self:has_holds() and held.taken_of(self, state) or 0
end

-- What the approvals take that are not held.
function any_limit:sum(state)
  return self.used - self:held(state)
end

-- This number of hits and ids more are held.
function any_limit:hold(hits, ids)
  if self:has_holds() then
    self.used = self.used + (self.counts == 'hits' and hits or ids)
  end
end

-- Another maximum is in force.
function any_limit:set_max(max)
  self.max = max
end

-- Whether nothing counts, so that the limit might as well begin again.
function any_limit:counts_nothing()
  return self.used == 0
end

-- Whether held approvals take all of it, so that only a lapse makes room by itself.
function any_limit:is_full_of_held(state)
  return self:held(state) >= self:capacity()
end

-- How much may count at once.
function any_limit:capacity()
  return self.max
end

-- What the approvals take, which is rounded up in `used`.
function any_limit:exact_used()
  return self.used
end

function any_limit:free()
  return self:capacity() - self:exact_used()
end

function any_limit:fits(hits)
  return self:taken_of(hits) <= self:free() + EPSILON
end

-- Whether a waiter fits into what is left. One that needs more than the maximum, which was lowered since, gets a window
-- for itself.
function any_limit:fits_into(free, hits)
  return self:taken_of(hits) <= free + EPSILON or (self.max > 0 and free >= self:capacity() - EPSILON)
end

-- Whether a check takes more than may ever count at once.
function any_limit:is_below(hits)
  return self:taken_of(hits) > self:capacity()
end

function any_limit:is_full()
  return not self:fits(1)
end

-- Whether an id has to be kept of an approval. Ids that are held are kept with their holds.
function any_limit:keeps_id_of(is_held)
  return not is_held or not self:has_holds()
end

-- How many more ids it may keep.
function any_limit:free_ids(keys, state, call, is_held)
  return self:keeps_id_of(is_held) and self.ids.free(keys, state, call, self) or math.huge
end

-- Takes what an approval needs. An id that it has already does not count again: the key may have forgotten the
-- approval.
function any_limit:take(keys, state, call, id, hits, is_held)
  local taken = self:taken_of(hits)
  if self:keeps_id_of(is_held) and self.ids.add(keys, state, call, self, id, taken, is_held) then
    self:count(taken, 0)
  end
end

-- The same for approvals that have one hit each and are not held.
function any_limit:take_all(keys, state, call, ids)
  for _, id in ipairs(ids) do
    self:take(keys, state, call, id, 1, false)
  end
end

-- What an approval takes that is not held; nil if it does not count here.
function any_limit:taken_by(keys, state, id)
  return (self:find(keys, state, id))
end

-- Gives back what an approval takes, unless the limit keeps what is released. `is_unused`: nobody has got the approval,
-- so that every limit gives it back. Returns whether it counted here, other than as a held one.
function any_limit:give_back(keys, state, id, is_held, is_unused)
  if not self:keeps_id_of(is_held) or (self.keeps and not is_unused) then
    return false
  end
  local taken, mark = self:find(keys, state, id)
  -- Also one that does not count any more: a bucket with a slower pace would let it count again, and be released twice.
  self.ids.remove(keys, state, self, id)
  if taken then
    self:change(state, taken, 0, mark)
  end
  return taken ~= nil
end

-- Gives an approval other hits. Returns whether it counts here, other than as a held one.
function any_limit:amend(keys, state, id, hits, is_held)
  local before, mark = nil, nil
  if self:keeps_id_of(is_held) then
    before, mark = self:find(keys, state, id)
  end
  if before then
    self.ids.write(keys, state, self, id, self:change(state, before, self:taken_of(hits), mark), before)
  end
  return before ~= nil
end

-- Whether it counts the checks of a list (queue/lists), or, for nil, those that have no lane.
function any_limit:counts_list(list)
  if self.group then
    return list == self.group.id
  end
  return not self.lanes or self.lanes[list or ''] == true
end

-- Whether the limit of other rules can go on with what was approved under this one.
function any_limit:continues_as(limit)
  return self.algorithm == limit.algorithm and self:has_same_steps(limit)
end

-- Whether another limit of its kind counts approvals for as long, as far as that depends on the kind.
function any_limit:has_same_steps()
  return true
end

-- The names of its ids that are built, for `unpack`.
function any_limit:built_names(keys)
  return self.ids.built_names(keys, self)
end

return any_limit
