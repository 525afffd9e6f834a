-- A limit of which no span of its window's length has more than the maximum. The window moves on in steps: what an
-- approval takes counts until the end of its step plus the window, rounded up to a step. So room comes back at most one
-- step late, and never early. limits/fixed-window says which questions a kind of limits answers.
--
--   parameter     into how many steps the window is divided
--   start         of its period, in ms since 1970: periods of the window's length follow back to back
--   step_start    when the current step began, in ms since 1970
--   number        of the current step: steps are counted from the limit's first one on
--   sums          what the approvals of each step take that counts, by its number; none is 0
--   used          all of these, and what held approvals take: they count in the current step

local any_limit = require 'limits/any-limit'
local held = require 'limits/held'
local recent_ids = require 'limits/recent-ids'

local sliding_window = { like = any_limit, number = 0, generation = 0, kept_generation = 0 }

function sliding_window.begin(declared, start)
  local step = math.max(1, math.ceil(declared.window / declared.parameter))
  local limit = any_limit.begin(sliding_window, declared, start, recent_ids)
  limit.step, limit.steps, limit.step_start, limit.sums = step, math.ceil(declared.window / step), start, {}
  return limit
end

local function format(step_start, number, sums)
  return string.format('"step_start":%d,"number":%d,"sums":[%s]', step_start, number, table.concat(sums, ','))
end

-- Each check writes it. `sums` has what the approvals of each step take, the current step first, up to the oldest one that has
-- any.
-- A move alone is not written, since the next call moves in the same way: `stored` is what was read, until more has changed.
function sliding_window:format()
  local stored, number, by_number, sums = self.stored, self.number, self.sums, {}
  if stored then
    return format(stored.step_start, stored.number, stored.sums)
  end
  for age = 0, self.steps do
    local sum = by_number[number - age]
    if sum then
      for empty = #sums + 1, age do
        sums[empty] = 0
      end
      sums[age + 1] = sum
    end
  end
  return format(self.step_start, number, sums)
end

function sliding_window:read(state, stored)
  local number, sums, used = stored.number, stored.sums, self:held(state)
  self.stored = stored
  self.step_start, self.number, self.sums = stored.step_start, number, {}
  for i = 1, #sums do
    local sum = sums[i]
    if sum > 0 then
      self.sums[number - i + 1] = sum
      used = used + sum
    end
  end
  self.used = used
  self.generation = self:generation_of(self.number)
  self.kept_generation = self.generation
end

-- An id is needed as long as its step counts, so at most until the end of the next generation.
function sliding_window:generation_of(number)
  return math.floor(number / (self.steps + 1))
end

-- Moves to the step that holds the time. Returns whether that made room.
function sliding_window:move(now_us)
  local passed = math.floor((math.floor(now_us / 1000) - self.step_start) / self.step)
  if passed <= 0 then
    return false
  end
  self.step_start, self.number = self.step_start + passed * self.step, self.number + passed
  self.generation = self:generation_of(self.number)
  local had = self.used
  for number, sum in pairs(self.sums) do
    if number < self.number - self.steps then
      self.sums[number] = nil
      self.used = self.used - sum
    end
  end
  return self.used < had
end

-- After ids were dropped, the number of the step has to be known.
function sliding_window:drop_ended_ids(keys)
  if recent_ids.drop_ended(keys, self) then
    self.stored = nil
  end
end

-- What is kept with an id of now: the number of the step in which it counts.
function sliding_window:mark()
  return self.number
end

local function add_to_step(self, number, hits)
  local sum = (self.sums[number] or 0) + hits
  self.sums[number] = sum > 0 and sum or nil
  self.used, self.stored = self.used + hits, nil
end

function sliding_window:change(_, before, taken, number)
  add_to_step(self, number, taken - before)
  return taken
end

function sliding_window:count(taken, of_held)
  add_to_step(self, self.number, taken - of_held)
  self.used = self.used + of_held
end

-- What an approval takes, and the number of its step; nil if it does not count any more.
function sliding_window:find(keys, _, id)
  local taken, number = recent_ids.find(keys, self, id)
  if taken and number >= self.number - self.steps then
    return taken, number
  end
end

-- When a step does not count any more, in ms since 1970.
local function end_of(self, number)
  return self.step_start + (number - self.number + self.steps + 1) * self.step
end

-- The oldest step whose end has made room for this much, and whether the steps take so much in all: the rest is held.
local function step_that_frees(self, missing)
  local sums = self.sums
  for number = self.number - self.steps, self.number do
    local sum = sums[number] or 0
    if missing <= sum then
      return number, true
    end
    missing = missing - sum
  end
  return self.number, false
end

-- When this number of hits fits, or, if it fits already, when one more hit does than now: when the oldest steps end to count that
-- take so much, or a hold lapses. More than the maximum may count, after a correction or with a lower maximum.
function sliding_window:room_at(state, hits)
  local lapse = held.next_lapse(self, state)
  local missing = math.max(1, self.used - self.max + math.min(self:taken_of(hits or 1), self.max))
  local number, frees_all = step_that_frees(self, missing)
  if frees_all then
    return math.min(end_of(self, number), lapse)
  elseif self:fits(hits or 1) then
    return math.min(self:ends(), lapse)
  end
  return lapse < math.huge and lapse or self:ends()
end

-- Whoever is approved now or when a step ends has room again a window later. So each `max` hits take one more round of
-- all steps. Held approvals count in the current step.
function sliding_window:micros_to_turn(state, call, before, hits)
  local missing = before + math.min(self:taken_of(hits), self.max) - math.max(0, self.max - self.used)
  if missing <= 0 then
    return 0
  end
  local rounds = math.ceil(missing / self.max) - 1
  -- What a lowered maximum has no room for makes none when it ends to count.
  local excess = math.max(0, self.used - self.max)
  local number = step_that_frees(self, missing - rounds * self.max + excess)
  return (end_of(self, number) + rounds * (self.steps + 1) * self.step) * 1000 - call.now_us
end

-- A clock that has gone back by up to a window moves no step. If it has gone back further, all that counts moves into
-- the current step, and the ids are forgotten.
function sliding_window:begin_by(now_ms)
  local is_later = self.start > now_ms
  self.start = math.min(self.start, now_ms)
  if self.step_start <= now_ms + self.window then
    return is_later
  end
  local sum = 0
  for _, of_step in pairs(self.sums) do
    sum = sum + of_step
  end
  self.sums, self.step_start, self.stored = {}, now_ms, nil
  -- Later than all numbers that ids have.
  self.number = self.number + self.steps + 1
  self.sums[self.number] = sum > 0 and sum or nil
  self.generation = self:generation_of(self.number)
  return true
end

function sliding_window:clear()
  self.sums, self.used, self.stored = {}, 0, nil
end

function sliding_window:carry(_, sum)
  add_to_step(self, self.number, sum)
end

-- The limit of other rules that has the same steps goes on with what was approved under this one.
function sliding_window:continue_as(limit, now_ms)
  limit.start, limit.used, limit.step_start = self.start, self.used, self.step_start
  limit.number, limit.sums = self.number, self.sums
  limit.generation, limit.kept_generation = self.generation, self.kept_generation
  limit:roll(nil, now_ms)
end

function sliding_window:has_same_steps(limit)
  return limit.window == self.window and limit.parameter == self.parameter
end

-- By its period, which does not move in a key that is idle.
function sliding_window:counts_until()
  return self.start + self.window + (self.steps + 2) * self.step
end

function sliding_window:kept_until()
  return self.step_start + 3 * (self.steps + 1) * self.step
end

-- It is full until there is room in `millis_left`, as far as a caller knows.
function sliding_window:restore_full(_, now_ms, millis_left)
  local left = math.max(1, math.min(self.steps + 1, math.ceil(millis_left / self.step)))
  local room_at = now_ms + math.max(1, math.min(millis_left, left * self.step))
  self.step_start, self.number = room_at - left * self.step, self.steps + 1
  self.generation, self.kept_generation = 1, 1
  add_to_step(self, self.number - (self.steps + 1) + left, self.max)
end

return sliding_window
