-- A limit with an even pace: the maximum per window, and up to `burst` at once. It has a level, which approvals raise by
-- their hits, and which drains by the maximum per window. An approval fits if the level stays within the burst. So in any
-- span L no more than burst + L * maximum / window is approved. limits/fixed-window says which questions a kind of
-- limits answers.
--
--   parameter     the burst; in force is at most the maximum
--   start         of its period, in ms since 1970: periods of the window's length follow back to back
--   level, time   the level as it was when something was taken or given back last, in us since 1970
--   pace_since    when the pace was last changed, in us since 1970; 0 if it was not
--   drained       the level as of this call
--   used          the same, rounded up
--   excess        how much higher the level, as of `time`, would be with the maximum `high_max`
--   high_max      a higher maximum that was in force before; 0 if there is no excess, unless the maximum is 0
--   excess_left   the excess as of this call
--   generation    of its ids: the number of its periods so far
--
-- A lower maximum cuts the level to its burst + maximum, so it closes the bucket for two windows at most. What is cut off
-- becomes excess. Level and excess together drain at the pace of `high_max`, and another change of the maximum adds the
-- excess to the level again. So requests with different maxima get no more together than the highest of them allows.
--
-- A time in the future instead of a level, as GCRA has it, could not carry less than 0.25 us in Redis's doubles.
--
-- It takes an approval that is held once, when it is given: a bucket limits starts, not what is at work.

local any_limit = require 'limits/any-limit'
local held = require 'limits/held'
local json = require 'lib/json'
local recent_ids = require 'limits/recent-ids'

local EPSILON = any_limit.EPSILON
-- While the queue is served, the level may have drained below 0 by what drains in this time, so that a settle that comes
-- late costs delay and no rate.
local CREDIT_MICROS = 30000

local token_bucket = {
  like = any_limit, has_pace = true, counts_held = false, level = 0, time = 0, pace_since = 0, drained = 0, excess = 0, high_max = 0, excess_left = 0,
  generation = 0, kept_generation = 0,
}

function token_bucket.begin(declared, start)
  local limit = any_limit.begin(token_bucket, declared, start, recent_ids)
  limit.now_us = start * 1000
  return limit
end

-- Each check writes it. `json.fields` would take twice as long.
function token_bucket:format()
  local fields = string.format('"level":%.17g,"time":%d,"generation":%d', self.level, self.time, self.generation)
  if self.pace_since == 0 and self.high_max == 0 then
    return fields
  end
  local of_pace = string.format('"pace_since":%.0f,"high_max":%.0f,"excess":%.17g', self.pace_since, self.high_max, self.excess)
  return json.join(fields, of_pace)
end

function token_bucket:read(_, stored)
  self.level, self.time, self.generation = stored.level, stored.time, stored.generation
  self.pace_since, self.high_max, self.excess = stored.pace_since or 0, stored.high_max or 0, stored.excess or 0
  self.kept_generation = self.generation
  self.drained, self.excess_left, self.now_us = self.level, self.excess, self.time
end

function token_bucket:counts_nothing()
  return self.used == 0 and self.excess_left == 0
end

-- Each check asks several times. `math.min` would take twice as long.
function token_bucket:capacity()
  local burst, max = self.parameter, self.max
  return burst < max and burst or max
end

function token_bucket:drains_in(micros)
  return micros * self.max / (self.window * 1000)
end

function token_bucket:micros_to_drain(level)
  return math.max(0, math.ceil((level - EPSILON) * (self.window * 1000) / self.max))
end

-- The level as of now. `lowest`: what it may have drained to.
local function level_now(self, lowest)
  return math.max(lowest, self.level - self:drains_in(math.max(0, self.now_us - self.time)))
end

-- What the level may have drained to while the queue is served.
local function lowest_serving(self)
  return 0 - self:drains_in(CREDIT_MICROS)
end

local function drain(self, lowest)
  self.drained = level_now(self, lowest)
  self.used = math.max(0, math.ceil(self.drained - EPSILON))
  self.excess_left = self.excess
  if self.excess > 0 then
    local elapsed = math.max(0, self.now_us - self.time)
    local drains = elapsed * (self.high_max - self.max) / (self.window * 1000)
    self.excess_left = math.max(0, self.excess - drains)
  end
end

-- Returns whether it has room.
function token_bucket:move(now_us)
  self.now_us = now_us
  drain(self, 0)
  return self:fits(1)
end

function token_bucket:begin_serving()
  drain(self, lowest_serving(self))
end

function token_bucket:end_serving()
  self.drained = math.max(0, self.drained)
end

-- The highest level that a maximum allows. Nothing drains with a maximum of 0, so the level then stays as it is.
local function highest_level(self, max)
  local burst = self.parameter
  return max == 0 and math.huge or (burst < max and burst or max) + max
end

local function forget_excess(self)
  self.excess, self.excess_left, self.high_max = 0, 0, 0
end

-- Sets level and excess as of now. The excess is kept if a higher maximum is known.
function token_bucket:set_level(level, excess)
  self.level, self.time = level, math.max(self.time, self.now_us)
  self.drained, self.used = level, math.max(0, math.ceil(level - EPSILON))
  if excess > EPSILON and self.high_max > self.max then
    self.excess = math.min(excess, highest_level(self, self.high_max) - highest_level(self, self.max))
  else
    self.excess = 0
    -- A maximum of 0 cuts nothing off, but the next one may.
    self.high_max = self.max == 0 and self.high_max or 0
  end
  self.excess_left = self.excess
end

-- Raises the level as far as the maximum allows, and the excess by the rest. Returns by how much the level has risen.
-- `known_max`: a maximum that has been in force
local function raise(self, hits, known_max)
  local rise, room = hits, highest_level(self, self.max) - self.drained
  if hits > room then
    rise = math.max(0, room)
    self.high_max = math.max(self.high_max, known_max)
  end
  self:set_level(self.drained + rise, self.excess_left + (hits - rise))
  return rise
end

-- The level drains at the old pace until now; below 0 as well, for those who may be served from the queue.
local function end_pace(self)
  self.level, self.time = level_now(self, lowest_serving(self)), math.max(self.time, self.now_us)
end

local function begin_pace(self)
  if self.drained > 0 then
    local level, highest = self.drained + self.excess_left, highest_level(self, self.max)
    self:set_level(math.min(level, highest), math.max(0, level - highest))
  else
    forget_excess(self)
  end
  self.pace_since = self.now_us
end

function token_bucket:drop_ended_ids(keys)
  recent_ids.drop_ended(keys, self)
end

function token_bucket:roll(_, now_ms)
  local before = self.start
  local has_rolled = any_limit.roll(self, nil, now_ms)
  if has_rolled then
    self.generation = self.generation + math.max(1, math.floor((self.start - before) / self.window))
  end
  return has_rolled
end

function token_bucket:set_max(max)
  if max ~= self.max then
    end_pace(self)
    self.high_max = math.max(self.high_max, self.max)
    self.max = max
    begin_pace(self)
  end
end

function token_bucket:exact_used()
  return self.drained
end

-- What is kept with an id of now: the time of its approval.
function token_bucket:mark()
  return self.now_us
end

-- A waiter with more hits than the maximum has come when the maximum was higher.
function token_bucket:count(taken)
  raise(self, taken, taken)
end

-- What an approval took, and when; nil if an empty bucket would have filled since.
function token_bucket:find(keys, _, id)
  local taken, time = recent_ids.find(keys, self, id)
  -- An approval from before the clock went back counts from then on.
  time = taken and math.min(time, self.time)
  if taken and self:drains_in(self.now_us - time) <= self:capacity() then
    return taken, time
  end
end

-- More hits count from now on. The level has a bound: what it does not rise by can't be given back later. Of fewer hits, it
-- gives back what has not drained since they were taken: more would let two approvals through side by side. How much has
-- drained of what was taken at another pace is unknown, so nothing of that is given back.
function token_bucket:change(_, before, taken, time)
  if taken > before then
    return before + math.floor(raise(self, taken - before, 0) + EPSILON)
  end
  local left = before - taken - self:drains_in(math.max(0, self.now_us - time))
  if time >= self.pace_since and left > 0 and self.drained > 0 then
    self:set_level(math.max(0, self.drained - left), self.excess_left)
  end
  return taken
end

-- When this number of hits has drained, or, if it fits already, one more hit than now; in ms since 1970.
local function drained_at(self, hits)
  local wanted = math.min(self:taken_of(hits or 1), self:capacity())
  if not hits or wanted <= self:free() + EPSILON then
    wanted = math.max(1, math.floor(self:free() + EPSILON) + 1)
  end
  if self.max == 0 or wanted > self:capacity() then
    return self.start + self.window
  end
  return (self.now_us + self:micros_to_drain(wanted - self:free())) / 1000
end

-- The same, or when an approval may be given back that nobody has claimed.
function token_bucket:room_at(state, hits)
  return math.min(drained_at(self, hits), held.next_lapse(self, state))
end

function token_bucket:micros_to_turn(_, _, before, hits)
  local wanted = before + math.min(self:taken_of(hits), self:capacity())
  return self.max == 0 and math.huge or self:micros_to_drain(wanted - self:free())
end

-- A time that is later than the current millisecond is from before the clock went back. Earlier times in it must stay:
-- what has drained since the millisecond began would drain again.
local function begun_by(time, now_ms)
  return time >= (now_ms + 1) * 1000 and now_ms * 1000 or time
end

-- A clock that has gone back drains nothing.
function token_bucket:begin_by(now_ms)
  local is_later = self.start > now_ms or self.time >= (now_ms + 1) * 1000
  self.start = math.min(self.start, now_ms)
  self.time, self.pace_since = begun_by(self.time, now_ms), begun_by(self.pace_since, now_ms)
  return is_later
end

function token_bucket:clear()
  self.level, self.drained, self.used = 0, 0, 0
  forget_excess(self)
end

function token_bucket:carry(state, sum)
  if sum > 0 then
    self:set_level(math.min(sum, self:capacity()), 0)
  end
end

-- A period of another length that begins here ends no generation: its ids may count for as long as that period lasts.
function token_bucket:continue_as(limit, now_ms)
  local max, has_other_window = limit.max, limit.window ~= self.window
  if has_other_window then
    end_pace(self)
  end
  limit.start, limit.generation, limit.kept_generation = self.start, self.generation, self.kept_generation
  limit.now_us, limit.level, limit.time, limit.pace_since = self.now_us, self.level, self.time, self.pace_since
  limit.max, limit.drained, limit.used = self.max, self.drained, self.used
  limit.high_max, limit.excess, limit.excess_left = self.high_max, self.excess, self.excess_left
  if has_other_window then
    begin_pace(limit)
  end
  limit:set_max(max)
  any_limit.roll(limit, nil, now_ms)
end

function token_bucket:counts_until()
  return self.start + 3 * self.window
end

function token_bucket:kept_until()
  return self.start + 4 * self.window
end

-- One hit fits in `millis_left`, as far as a caller knows.
function token_bucket:restore_full(state, now_ms, millis_left)
  self.now_us = now_ms * 1000
  local left = math.max(0, math.min(millis_left, self.window))
  self:set_level(self:capacity() - 1 + self:drains_in(left * 1000), 0)
end

return token_bucket
