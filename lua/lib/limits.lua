-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A
-- `*` after a number marks it as set by a request. Equal limits are equal texts, so most checks need not parse them.

-- The limits of each text that was parsed: by this call, or, if the script is a function, by earlier calls as well.
local parsed, parsed_count = {}, 0
local MOST_PARSED = 1000

local function parse_limits(text)
  local limits = parsed[text]
  if not limits then
    local window, window_mark, max, max_mark, queue_max, queue_mark =
      string.match(text, '^(%d+)(%*?):(%d+)(%*?):(%d+)(%*?)$')
    limits = {
      text = text,
      window = tonumber(window),
      max = tonumber(max),
      queue_max = tonumber(queue_max),
      window_is_set = window_mark == '*',
      max_is_set = max_mark == '*',
      queue_max_is_set = queue_mark == '*',
    }
    if parsed_count == MOST_PARSED then
      parsed, parsed_count = {}, 0
    end
    parsed[text], parsed_count = limits, parsed_count + 1
  end
  return limits
end

local function format_limits(limits)
  return string.format(
    '%.0f%s:%.0f%s:%.0f%s',
    limits.window,
    limits.window_is_set and '*' or '',
    limits.max,
    limits.max_is_set and '*' or '',
    limits.queue_max,
    limits.queue_max_is_set and '*' or ''
  )
end
