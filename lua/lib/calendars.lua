-- What a caller says of the calendars of its rules (lib/limits-text). A caller knows Redis's time from the last answer, so
-- what it says may be out of date: Redis's clock has gone back over a midnight, or the caller has heard of Redis for the
-- first time.

local calendars = {}

-- Fails the call before it has changed anything, with Redis's time in ms since 1970, if that is in no window that the caller
-- brings. The caller is to call again, with the windows for that time.
function calendars.require_current(call)
  for _, windows in pairs(call.rules.calendars) do
    if call.now_ms < windows.start or call.now_ms >= windows.next_ends then
      error(string.format('STALE %.0f', call.now_ms), 0)
    end
  end
end

return calendars
