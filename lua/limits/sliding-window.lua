-- A limit of which no span of its window's length has more than the maximum. The window moves on in steps: what an
-- approval takes counts until the end of its step plus the window, rounded up to a step. So room comes back at most one
-- step late, and never early. limits/fixed-window says which questions a kind of limits answers.
--
--   parameter     into how many steps the window is divided
--   start         of its period, in ms since 1970: periods of the window's length follow back to back
--   step_start    when the current step began, in ms since 1970
--   number        of the current step: steps are counted from the limit's first one on
--   current       what the approvals of the current step take
--   past          what those of each earlier step take, with commas between, from the oldest step on that has any; '' if none
--                 has. It is a text, since a check reads and writes it without a look at each step
--   past_used     all of these
--   oldest        the number of the first step in `past`; of the current one if there is none
--   used          what the approvals take that counts, held ones included: they count in the current step

local any_limit = require 'limits/any-limit'
local digits = require 'lib/digits'
local held = require 'limits/held'
local recent_ids = require 'limits/recent-ids'

local sliding_window = {
  like = any_limit, number = 0, current = 0, past = '', past_used = 0, oldest = 0, generation = 0, kept_generation = 0,
}

function sliding_window.begin(declared, start)
  local step = math.max(1, math.ceil(declared.window / declared.parameter))
  local limit = any_limit.begin(sliding_window, declared, start, recent_ids)
  limit.step, limit.steps, limit.step_start = step, math.ceil(declared.window / step), start
  return limit
end

-- Each check writes it. A move alone is not written, since the next call moves in the same way: `stored` is what was read, until
-- more has changed.
function sliding_window:format()
  local from = self.stored or self
  local past = ''
  if from.past and from.past ~= '' then
    past = string.format(',"past":"%s","past_used":%.0f,"oldest":%d', from.past, from.past_used, from.oldest)
  end
  return string.format('"step_start":%d,"number":%d,"current":%.0f', from.step_start, from.number, from.current) .. past
end

function sliding_window:read(state, stored)
  self.stored = stored
  self.step_start, self.number, self.current = stored.step_start, stored.number, stored.current
  self.past, self.past_used, self.oldest = stored.past or '', stored.past_used or 0, stored.oldest or stored.number
  self.used = self.current + self.past_used + self:held(state)
  self.generation = self:generation_of(self.number)
  self.kept_generation = self.generation
end

-- An id is needed as long as its step counts, so at most until the end of the next generation.
function sliding_window:generation_of(number)
  return math.floor(number / (self.steps + 1))
end

-- Drops the steps that do not count any more, and those before the first one that has anything.
local function drop_ended(self)
  local first, past, at = self.number - self.steps, self.past, 1
  while at <= #past do
    local comma = string.find(past, ',', at, true) or #past + 1
    local sum = tonumber(string.sub(past, at, comma - 1))
    if sum > 0 and self.oldest >= first then
      break
    end
    self.past_used, self.oldest, at = self.past_used - sum, self.oldest + 1, comma + 1
  end
  self.past = string.sub(past, at)
end

-- The current step becomes the last of the earlier ones, with this number of steps without approvals after it.
local function end_step(self, passed)
  local sum = digits(self.current)
  self.past = (self.past == '' and sum or self.past .. ',' .. sum) .. string.rep(',0', math.min(passed - 1, self.steps))
  self.past_used, self.current = self.past_used + self.current, 0
end

-- Moves to the step that holds the time. Returns whether that made room.
function sliding_window:move(now_us)
  local passed = math.floor((math.floor(now_us / 1000) - self.step_start) / self.step)
  if passed <= 0 then
    return false
  end
  self.step_start, self.number = self.step_start + passed * self.step, self.number + passed
  self.generation = self:generation_of(self.number)
  local had = self.past_used + self.current
  end_step(self, passed)
  drop_ended(self)
  if self.past == '' then
    self.oldest = self.number
  end
  self.used = self.used - had + self.past_used
  return self.past_used < had
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

-- Changes what the approvals of an earlier step take.
local function add_to_past(self, number, hits)
  local sums = {}
  for empty = number, self.oldest - 1 do
    sums[empty] = '0'
  end
  local last = self.oldest - 1
  for sum in string.gmatch(self.past, '%d+') do
    last = last + 1
    sums[last] = sum
  end
  local before = tonumber(sums[number])
  local after = math.max(0, before + hits)
  sums[number] = digits(after)
  self.past_used, self.oldest = self.past_used + after - before, math.min(number, self.oldest)
  self.past = table.concat(sums, ',', self.oldest, last)
  drop_ended(self)
end

local function add_to_step(self, number, hits)
  if number == self.number then
    self.current = math.max(0, self.current + hits)
  else
    add_to_past(self, number, hits)
  end
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
  local number = self.oldest
  for sum in string.gmatch(self.past, '%d+') do
    missing = missing - sum
    if missing <= 0 then
      return number, true
    end
    number = number + 1
  end
  return self.number, missing <= self.current
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
  self.step_start, self.stored = now_ms, nil
  -- Later than all numbers that ids have.
  self.number = self.number + self.steps + 1
  self.generation = self:generation_of(self.number)
  self.current = self.past_used + self.current
  self.past, self.past_used, self.oldest = '', 0, self.number
  return true
end

function sliding_window:clear()
  self.current, self.used, self.stored = 0, 0, nil
  self.past, self.past_used, self.oldest = '', 0, self.number
end

function sliding_window:carry(_, sum)
  add_to_step(self, self.number, sum)
end

-- The limit of other rules that has the same steps goes on with what was approved under this one.
function sliding_window:continue_as(limit, now_ms)
  limit.start, limit.used, limit.step_start = self.start, self.used, self.step_start
  limit.number, limit.current = self.number, self.current
  limit.past, limit.past_used, limit.oldest = self.past, self.past_used, self.oldest
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
  self.oldest = self.number
  self.generation, self.kept_generation = 1, 1
  add_to_step(self, self.number - (self.steps + 1) + left, self.max)
end

return sliding_window
