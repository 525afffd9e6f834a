-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A
-- `*` after a maximum marks it as set by a request. Equal limits are equal texts, so most checks need not parse them.

-- The limits of each text that this call has parsed.
local read_limits = {}

local function parse_limits(text)
  local limits = read_limits[text]
  if not limits then
    local window, max, max_mark, queue_max, queue_mark = string.match(text, '^(%d+):(%d+)(%*?):(%d+)(%*?)$')
    limits = {
      text = text,
      window = tonumber(window),
      max = tonumber(max),
      queue_max = tonumber(queue_max),
      max_is_set = max_mark == '*',
      queue_max_is_set = queue_mark == '*',
    }
    read_limits[text] = limits
  end
  return limits
end

local function format_limits(limits)
  return string.format(
    '%.0f:%.0f%s:%.0f%s',
    limits.window,
    limits.max,
    limits.max_is_set and '*' or '',
    limits.queue_max,
    limits.queue_max_is_set and '*' or ''
  )
end
