-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A
-- `*` after a number marks it as set by a request. Then, for each further limit of the rules, a comma and
-- `<name>=<window>:<maximum>:<what it counts>`: `hits`, or `requests`, of which each counts as one. `:kept` after that: an
-- approval counts until the window ends in which it was given, and in no other, whether it is released or held.
-- Equal limits are equal texts, so most checks need not parse them.

local limits_text = {}

-- The limits of each text that was parsed: by this call, or, if the script is a function, by earlier calls as well.
local parsed, parsed_count = {}, 0
local MOST_PARSED = 1000

-- The list of further limits in a text, or nil if there are none.
local function parse_further(text)
  if text == '' then
    return nil
  end
  local list = {}
  for name, length, max, counts, kept in string.gmatch(text, ',([^=]+)=(%d+):(%d+):(%a+)(:?%a*)') do
    list[#list + 1] = {
      name = name, window = tonumber(length), max = tonumber(max), counts = counts, keeps = kept == ':kept',
    }
  end
  return list
end

function limits_text.parse(text)
  local limits = parsed[text]
  if not limits then
    local length, window_mark, max, max_mark, queue_max, queue_mark, further =
      string.match(text, '^(%d+)(%*?):(%d+)(%*?):(%d+)(%*?)(.*)$')
    limits = {
      text = text,
      window = tonumber(length),
      max = tonumber(max),
      queue_max = tonumber(queue_max),
      window_is_set = window_mark == '*',
      max_is_set = max_mark == '*',
      queue_max_is_set = queue_mark == '*',
      further_text = further,
      further = parse_further(further),
    }
    if parsed_count == MOST_PARSED then
      parsed, parsed_count = {}, 0
    end
    parsed[text], parsed_count = limits, parsed_count + 1
  end
  return limits
end

function limits_text.format(limits)
  return string.format(
    '%.0f%s:%.0f%s:%.0f%s%s',
    limits.window,
    limits.window_is_set and '*' or '',
    limits.max,
    limits.max_is_set and '*' or '',
    limits.queue_max,
    limits.queue_max_is_set and '*' or '',
    limits.further_text
  )
end

return limits_text
