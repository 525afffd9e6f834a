-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A `*`
-- after a number marks it as set by a request. Then, if the key's own limit is no fixed window, `,=<algorithm>:<steps or
-- burst>`. Then, for each further limit of the rules, a comma and `<name>=<window>:<maximum>:<what it counts>`: `hits`, or
-- `requests`, of which each counts as one. `:kept` after that: an approval counts until the window ends in which it was
-- given, and in no other, whether it is released or held. For one that is no fixed window, `:<algorithm>:<steps or burst>`
-- after that, with a second colon if `:kept` is missing. The version before reads all of them as fixed windows.
-- Equal limits are equal texts, so most checks need not parse them.

local limits_text = {}

-- The limits of each text that was parsed: by this call, or, if the script is a function, by earlier calls as well.
local parsed, parsed_count = {}, 0
local MOST_PARSED = 1000

-- A limit. `algorithm`: '' for a fixed window.
local function limit_of(name, length, max, counts, keeps, algorithm, parameter)
  return {
    name = name, window = tonumber(length), max = tonumber(max), counts = counts, keeps = keeps,
    algorithm = algorithm == '' and 'fixed_window' or algorithm, parameter = tonumber(parameter),
  }
end

-- The key's own limit, and the further ones in a text.
local function parse_limits(length, max, algorithm, parameter, further)
  local limits = { limit_of(nil, length, max, 'hits', false, algorithm, parameter) }
  for text in string.gmatch(further, '[^,]+') do
    local name, of_further, its_max, counts, kept, its_algorithm, its_parameter =
      string.match(text, '^([^=]+)=(%d+):(%d+):(%a+):?(%a*):?([%a_]*):?(%d*)$')
    limits[#limits + 1] = limit_of(name, of_further, its_max, counts, kept == 'kept', its_algorithm, its_parameter)
  end
  return limits
end

-- Returns the limits, of which `own` is the first, the maximum in the queue, which of them requests have set, the text,
-- and the part of it that has the further limits.
function limits_text.parse(text)
  local rules = parsed[text]
  if not rules then
    local length, window_mark, max, max_mark, queue_max, queue_mark, rest =
      string.match(text, '^(%d+)(%*?):(%d+)(%*?):(%d+)(%*?)(.*)$')
    local algorithm, parameter, further = string.match(rest, '^,=([%a_]+):(%d+)(.*)$')
    further = further or rest
    local limits = parse_limits(length, max, algorithm or '', parameter, further)
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
  local own = state.own
  return string.format(
    '%.0f%s:%.0f%s:%.0f%s%s%s',
    own.window,
    state.window_is_set and '*' or '',
    own.max,
    state.max_is_set and '*' or '',
    state.queue_max,
    state.queue_max_is_set and '*' or '',
    own.parameter and string.format(',=%s:%.0f', own.algorithm, own.parameter) or '',
    state.further_text
  )
end

return limits_text
