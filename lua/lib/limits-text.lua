-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A `*`
-- after a number marks it as set by a request. Then, for each further limit of the rules, a comma and
-- `<name>=<window>:<maximum>:<what it counts>`: `hits`, or `requests`, of which each counts as one. `:kept` after that:
-- an approval counts until the window ends in which it was given, and in no other, whether it is released or held.
-- Equal limits are equal texts, so most checks need not parse them.

local limits_text = {}

-- The limits of each text that was parsed: by this call, or, if the script is a function, by earlier calls as well.
local parsed, parsed_count = {}, 0
local MOST_PARSED = 1000

-- The key's own limit, and the further ones in a text.
local function parse_limits(length, max, further)
  local limits = { { window = tonumber(length), max = tonumber(max), counts = 'hits', keeps = false } }
  for name, of_further, its_max, counts, kept in string.gmatch(further, ',([^=]+)=(%d+):(%d+):(%a+)(:?%a*)') do
    limits[#limits + 1] = {
      name = name, window = tonumber(of_further), max = tonumber(its_max), counts = counts, keeps = kept == ':kept',
    }
  end
  return limits
end

-- Returns the limits, of which `own` is the first, the maximum in the queue, which of them requests have set, the text,
-- and the part of it that has the further limits.
function limits_text.parse(text)
  local rules = parsed[text]
  if not rules then
    local length, window_mark, max, max_mark, queue_max, queue_mark, further =
      string.match(text, '^(%d+)(%*?):(%d+)(%*?):(%d+)(%*?)(.*)$')
    local limits = parse_limits(length, max, further)
    rules = {
      text = text,
      limits = limits,
      own = limits[1],
      queue_max = tonumber(queue_max),
      window_is_set = window_mark == '*',
      max_is_set = max_mark == '*',
      queue_max_is_set = queue_mark == '*',
      further_text = further,
    }
    if parsed_count == MOST_PARSED then
      parsed, parsed_count = {}, 0
    end
    parsed[text], parsed_count = rules, parsed_count + 1
  end
  return rules
end

-- The text of a state's limits in force.
function limits_text.format(state)
  return string.format(
    '%.0f%s:%.0f%s:%.0f%s%s',
    state.own.window,
    state.window_is_set and '*' or '',
    state.own.max,
    state.max_is_set and '*' or '',
    state.queue_max,
    state.queue_max_is_set and '*' or '',
    state.further_text
  )
end

return limits_text
