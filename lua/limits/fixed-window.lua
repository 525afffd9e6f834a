-- A limit whose approvals count until its window ends. This is the first kind of limits: each kind answers the
-- questions below for a limit, `self`, which has:
--   algorithm             its kind, by its name in limits/kinds
--   parameter             of the kind: the name of a calendar, the steps of a sliding window, the burst of a token bucket; nil
--                         for this one
--   has_boundary          whether it counts in windows, at whose ends other rules come into force
--   takes_window          whether requests may set the length of its windows
--   window_varies         whether its windows have different lengths
--   has_pace              whether waiters are let go at an even pace
--   name                  nil for the key's own limit
--   window, max           the window's length in ms, and the maximum
--   counts, keeps         as in lib/limits-text
--   start                 of its window, in ms since 1970
--   used                  what the approvals take, held ones included unless the limit keeps what is released
--   carried               what it took over from a limit of another kind, which is among `used`
--   surplus               what a vendor counts besides, by its report, which is among `used`; 0 without a report
--   floor                 what counts at least while the report is in force
--   reported_until        when the report ends, in ms since 1970. The window lasts at least as long
--   ids                   where the ids of its approvals are: limits/own-ids or limits/further-ids

local any_limit = require 'limits/any-limit'
local held = require 'limits/held'
local json = require 'lib/json'
local window = require 'limits/window'

-- A limit of which nothing is stored has the other values.
local fixed_window = {
  like = any_limit, has_boundary = true, takes_window = true, carried = 0, surplus = 0, floor = 0, reported_until = 0,
}

local STORED = { 'carried', 'surplus', 'floor', 'reported_until' }

-- A limit with nothing approved. `declared`: a limit of lib/limits-text.
function fixed_window.begin(declared, start, ids)
  return any_limit.begin(fixed_window, declared, start, ids)
end

-- What a kind has to store besides `start` and `used`, as fields of lib/json.
function fixed_window:format()
  return json.fields(self, STORED)
end

-- Reads the same. `stored`: a table of these fields.
function fixed_window:read(_, stored)
  for _, name in ipairs(STORED) do
    self[name] = stored[name]
  end
end

function fixed_window:ends()
  return math.max(self.start + self.window, self.reported_until)
end

local function forget_report(self)
  self.used = self.used - self.surplus
  self.surplus, self.floor, self.reported_until = 0, 0, 0
end

-- Whether a report is in force that ends before the window.
local function ends_report_first(self)
  return self.surplus > 0 and self.reported_until < self:ends()
end

-- Moves on to the time of a call, inside of a period. Returns whether there may be more room.
function fixed_window:move(now_us, state)
  local is_over = ends_report_first(self) and now_us >= self.reported_until * 1000
  if is_over then
    forget_report(self)
  end
  return is_over
end

-- Takes what a vendor says remains of the limit, if that is less than what is left here. The report ends in `millis` ms, or
-- with the window if that is nil. The window lasts at least as long.
function fixed_window:report(state, call, remaining, millis)
  local floor = math.max(0, self.max - remaining)
  if floor < self.used or (floor == self.used and self.surplus == 0) then
    return
  end
  self.reported_until = millis and call.now_ms + millis or self:ends()
  self.surplus, self.floor, self.used = self.surplus + floor - self.used, floor, floor
  state.set_at = call.now_ms
end

-- During a report, what was given back counts for the vendor, so that a later approval counts on top of the floor.
local function keep_floor(self)
  if self.used < self.floor then
    self.surplus, self.used = self.surplus + self.floor - self.used, self.floor
  end
end

function fixed_window:is_current(now_ms)
  return now_ms >= self.start and now_ms < self:ends()
end

-- Begins another window, in which only held approvals count.
function fixed_window:begin_window(state)
  forget_report(self)
  self.used, self.carried = self:held(state), 0
end

-- Moves to the window that holds `now_ms`, in which held approvals count first. `length`: of the next windows. It
-- counts from the first boundary after the change. Returns whether another window begins.
function fixed_window:roll(state, now_ms, length)
  if self:is_current(now_ms) then
    return false
  end
  self.start = window.start_of(self:ends(), self.window, now_ms)
  if self.window ~= length then
    self.window, self.start = length, window.start_of(self.start, length, now_ms)
  end
  self:begin_window(state)
  return true
end

-- How much a window may have: its maximum, but no more ids than are kept.
function fixed_window:most_hits(state, call)
  return self.surplus == 0 and self.ids.have_one_each(state, self) and math.min(self.max, call.max_ids) or self.max
end

function fixed_window:is_full(state, call)
  return self.used >= self:most_hits(state, call)
end

function fixed_window:take(keys, state, call, id, hits, is_held)
  if self:keeps_id_of(is_held) then
    self.used = self.used + self.ids.add(keys, state, call, self, id, self:taken_of(hits))
  end
end

function fixed_window:take_all(keys, state, call, ids)
  if self.name then
    any_limit.take_all(self, keys, state, call, ids)
  else
    self.used = self.used + self.ids.add_all(keys, state, call, ids)
  end
end

-- Counts what approvals take in this call alone: it has no id, and is not written. The second argument: how much of that held
-- ones take, which the state counts already.
function fixed_window:count(taken)
  self.used = self.used + taken
end

function fixed_window:hold(hits, ids)
  any_limit.hold(self, hits, ids)
  keep_floor(self)
end

-- What the approvals take that are not held, without what a vendor counts besides.
local function sum_of_own(self, state)
  return self.used - self:held(state) - self.surplus
end

-- Gives hits back without the approvals that took them. Ids stay, so that there may be more than hits from now on. Returns how many
-- it has given back.
function fixed_window:refund(state, hits)
  if self.keeps or self.counts ~= 'hits' then
    return 0
  end
  local refunded = math.min(hits, sum_of_own(self, state))
  if refunded > 0 then
    self.used = self.used - refunded
    keep_floor(self)
  end
  return refunded
end

-- An approval takes something else than before. Returns what its id takes from now on. `mark`: of the id, where it has one.
function fixed_window:change(state, before, taken)
  self.used = self.used + taken - before
  -- After a refund, approvals may be given back whose hits were refunded. Less than nothing never counts.
  self.used = self.used + math.max(0, -sum_of_own(self, state))
  keep_floor(self)
  return taken
end

function fixed_window:find(keys, state, id)
  return self.ids.find(keys, state, self, id)
end

-- Gives back ids that have one hit each, without a report. Returns how many of them counted.
function fixed_window:give_all_back(keys, ids)
  local removed = self.ids.remove_all(keys, ids)
  self.used = self.used - removed
  return removed
end

-- When it has more room, in ms since 1970: when its window or a report ends or a hold lapses. While held approvals take
-- all of the maximum, the window's end makes no room. Where a kind can say it: when there is room for a number of hits,
-- which the head of the queue needs; without one, when one more hit fits.
function fixed_window:room_at(state)
  local window_end = self.surplus > 0 and self.reported_until or self:ends()
  local lapse = held.next_lapse(self, state)
  return lapse < math.huge and self:held(state) >= self.max and lapse or math.min(window_end, lapse)
end

-- When the window ends that comes this many windows after its own, in ms since 1970. `later`: the length of later windows.
function fixed_window:end_after(windows, later)
  return self:ends() + windows * later
end

-- The fewest microseconds until a check would have its turn, if nothing was given back before; 0 if there is room.
-- `before`: how many wait before it, each for one hit at least. `later`: the length of the windows after this one. `later_max`:
-- their maximum, or nil if it stays.
function fixed_window:micros_to_turn(state, call, before, hits, later, later_max)
  local most = hits == 1 and self:most_hits(state, call) or self.max
  local free = math.max(0, most - self.used)
  if before + math.min(self:taken_of(hits), most) <= free then
    return 0
  end
  local later_most = later_max or most
  local missing = before + math.min(self:taken_of(hits), later_most) - free
  if ends_report_first(self) then
    local opens = math.max(0, most - self.used + self.surplus) - free
    if missing <= opens then
      return self.reported_until * 1000 - call.now_us
    end
    missing = missing - opens
  end
  -- A lower maximum that comes may leave nothing to be had.
  local windows = missing > 0 and math.ceil(missing / later_most) - 1 or 0
  return self:end_after(windows, later) * 1000 - call.now_us
end

-- A window that begins in the future is from before the clock went back. It begins now, with what was approved in it.
-- A report lasts as long as it still had to at `set_at`, if that is in the future. Returns whether it was one.
function fixed_window:begin_by(now_ms, set_at)
  if self.reported_until > set_at and set_at > now_ms then
    self.reported_until = self.reported_until - set_at + now_ms
  end
  local is_later = self.start > now_ms
  self.start = math.min(self.start, now_ms)
  return is_later
end

function fixed_window:clear()
  forget_report(self)
  self.used, self.carried = 0, 0
end

-- Takes what the approvals of other rules take, without their ids.
function fixed_window:carry(state, sum)
  self.used, self.carried = self.used + sum, self.carried + sum
end

-- The limit of other rules, which counts in the same way, goes on with what was approved under this one. If its window
-- is over by a shorter length, all of that counts in the window that is current by that length: ids have no times, and
-- some were approved in it.
function fixed_window:continue_as(limit, now_ms)
  limit.start, limit.used, limit.carried = self.start, self.used, self.carried
  limit.surplus, limit.floor, limit.reported_until = self.surplus, self.floor, self.reported_until
  if not limit:is_current(now_ms) then
    limit.start = window.start_of(limit.start, limit.window, now_ms)
  end
end

-- Until when anything may count that was approved by now, in ms since 1970.
function fixed_window:counts_until()
  return self:ends()
end

-- Until when its ids may be needed, in ms since 1970.
function fixed_window:kept_until()
  return window.idle_after(self:ends(), self.window)
end

-- It is full until its window ends, in `millis_left`, as far as a caller knows. At least a millisecond is left.
function fixed_window:restore_full(_, now_ms, millis_left)
  self.start = now_ms - math.min(window.begun_ago(self.window, millis_left), self.window - 1)
  self.used = self.max
end

return fixed_window
