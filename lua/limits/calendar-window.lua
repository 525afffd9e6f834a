-- A fixed window that is a day, a week or a month of a time zone. `parameter` names the calendar: lib/limits-text says how.
-- It has the functions of limits/fixed-window, but for those below, and besides its fields:
--   ends_at    when its window ends by the calendar, in ms since 1970; 0 while the limit has no window yet
--   next_ends  the same of the next window
--   windows    what the caller says of the calendar: `start`, `ends` and `next_ends` of the window that holds its time of
--              Redis; nil if its rules do not have this calendar
--
-- The stored end stands, whatever a later call says: callers may have other versions of the rules of time zones. `window`
-- is the length of the longest day, week or month, so the idle removal needs no calendar.

local any_limit = require 'limits/any-limit'
local fixed_window = require 'limits/fixed-window'
local json = require 'lib/json'
local window = require 'limits/window'

local calendar_window = {
  like = fixed_window, has_boundary = true, takes_window = false, window_varies = true, ends_at = 0, next_ends = 0,
}

local STORED = { 'ends_at', 'next_ends' }

-- A limit with nothing approved. It has no window before it moves.
function calendar_window.begin(declared, start, ids)
  local limit = any_limit.begin(calendar_window, declared, start, ids)
  limit.windows = declared.windows
  return limit
end

function calendar_window:format()
  return json.join(json.fields(self, STORED), fixed_window.format(self))
end

function calendar_window:read(state, stored)
  self.ends_at, self.next_ends = stored.ends_at, stored.next_ends
  fixed_window.read(self, state, stored)
end

-- The start, the end and the next end of the window that holds a time. If the caller does not know the calendar, what the
-- last one has said of the next window counts, and then windows of the greatest length.
local function window_at(self, now_ms)
  local windows, length = self.windows, self.window
  if windows and now_ms < windows.ends then
    return windows.start, windows.ends, windows.next_ends
  elseif windows then
    return windows.ends, windows.next_ends, windows.next_ends + length
  elseif now_ms >= self.ends_at and now_ms < self.next_ends then
    return self.ends_at, self.next_ends, self.next_ends + length
  end
  local start = window.start_of(math.max(self.start, self.next_ends), length, now_ms)
  return start, start + length, start + 2 * length
end

local function enter(self, now_ms)
  self.start, self.ends_at, self.next_ends = window_at(self, now_ms)
end

function calendar_window:ends()
  return math.max(self.ends_at > 0 and self.ends_at or self.start + self.window, self.reported_until)
end

function calendar_window:length()
  return self.ends_at - self.start
end

function calendar_window:is_current(now_ms)
  return self.ends_at > 0 and fixed_window.is_current(self, now_ms)
end

-- A window that is over goes on if the calendar of the caller has not begun another one since its start.
function calendar_window:move(now_us, state)
  local now_ms, windows = math.floor(now_us / 1000), self.windows
  if not self:is_current(now_ms) then
    local start, ends, next_ends = window_at(self, now_ms)
    if start <= self.start and self.start <= now_ms then
      self.start, self.ends_at, self.next_ends = self.ends_at > 0 and self.start or start, ends, next_ends
    end
  elseif windows and windows.ends == self.ends_at then
    self.next_ends = windows.next_ends
  end
  return fixed_window.move(self, now_us, state)
end

-- A new window begins where the calendar says, also if a report has kept the last one open for longer.
function calendar_window:roll(state, now_ms)
  if self:is_current(now_ms) then
    return false
  end
  enter(self, now_ms)
  self:begin_window(state)
  return true
end

-- When the window ends that comes this many windows after its own, in ms since 1970. From the second on, they count as long
-- as the first.
function calendar_window:end_after(windows)
  if windows == 0 then
    return self:ends()
  end
  return math.max(self.next_ends, self:ends()) + (windows - 1) * (self.next_ends - self.ends_at)
end

-- A window that begins in the future is from before the clock went back. What was approved in it counts in the window that
-- holds this time.
function calendar_window:begin_by(now_ms, set_at)
  local is_later = fixed_window.begin_by(self, now_ms, set_at)
  if is_later then
    enter(self, now_ms)
  end
  return is_later
end

function calendar_window:has_same_steps(limit)
  return self.parameter == limit.parameter
end

function calendar_window:continue_as(limit, now_ms)
  limit.ends_at, limit.next_ends = self.ends_at, self.next_ends
  fixed_window.continue_as(self, limit, now_ms)
end

-- It is full until its window ends, unless there was room before, as far as a caller knows. A caller whose rules lack the
-- calendar knows only when there was room. The window ends then, so that these rules can come into force.
function calendar_window:restore_full(state, now_ms, millis_left)
  if not self.windows then
    fixed_window.restore_full(self, state, now_ms, millis_left)
    self.ends_at = self.start + self.window
    self.next_ends = self.ends_at + self.window
    return
  end
  self.used = millis_left > 0 and self.max or 0
end

return calendar_window
