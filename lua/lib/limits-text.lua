-- The limits of a key as one text, `<window>:<maximum>:<maximum in the queue>`, with the window's length in ms. A `*`
-- after a number marks it as set by a request. Then, if the key's own limit is no fixed window, `,=<algorithm>:<parameter>`:
-- the steps of a sliding window, the burst of a token bucket, or `<unit>.<time zone>` of a calendar, with a `.` for each `/`
-- of the zone. Then, for each further limit of the rules, a comma and `<name>=<window>:<maximum>:<what it counts>`: `hits`,
-- or `requests`, of which each counts as one. `:kept` after that: an approval counts until the window ends in which it was
-- given, and in no other, whether it is released or held. For one that is no fixed window, `:<algorithm>:<parameter>`
-- after that, with a second colon if `:kept` is missing. For one that counts some lanes only, `:<lane>+<lane>` at the end, after
-- as many colons as if nothing was missing. For one that each group has to itself, `:group` after that, and then
-- `+<group>><maximum>` for each group that has another maximum.
-- Equal limits are equal texts, so most checks need not parse them.
--
-- A caller whose rules have calendars adds for each of these `@<unit>.<time zone>=<start>:<end>:<end of the next window>`, in
-- ms since 1970, of the window that holds Redis's time as far as the caller knows. That is no part of the limits.

local limits_text = {}

-- The number of the form of the state, which is raised when replicas could not read what others of an earlier version have
-- stored. A state without it has form 0.
local FORM = '2'

-- The limits of each text that was parsed: by this call, or, if the script is a function, by earlier calls as well.
local parsed, parsed_count = {}, 0
local parsed_groups, parsed_groups_count = {}, 0
local MOST_PARSED = 1000

-- The lists of lanes, as a set; nil for ''.
local function parse_lanes(text)
  local lanes = nil
  for name in string.gmatch(text, '[^+]+') do
    lanes = lanes or {}
    lanes['lane:' .. name] = true
  end
  return lanes
end

-- The maxima of groups (queue/lists), by their ids; nil for a limit that all share. `text`: '' for that.
local function parse_maxima(text)
  local maxima = text ~= '' and {} or nil
  for group, max in string.gmatch(text, '%+([^>]*)>(%d+)') do
    maxima['group:' .. group] = tonumber(max)
  end
  return maxima
end

-- A limit. `algorithm`: '' for a fixed window.
local function limit_of(name, length, max, counts, keeps, algorithm, parameter, lanes, groups)
  return {
    name = name, window = tonumber(length), max = tonumber(max), counts = counts, keeps = keeps,
    algorithm = algorithm == '' and 'fixed_window' or algorithm, takes_window = algorithm == '',
    parameter = tonumber(parameter) or (parameter ~= '' and parameter or nil),
    lanes = parse_lanes(lanes or ''), lanes_text = lanes or '', maxima = parse_maxima(groups or ''),
  }
end

-- The further limits in a text: those of the key, which are added to `limits`, and those that each group has to itself, with their part
-- of the text.
local function parse_further(further, limits)
  local of_groups, texts = {}, {}
  for text in string.gmatch(further, '[^,]+') do
    local name, of_further, its_max, counts, kept, its_algorithm, its_parameter, lanes, groups =
      string.match(text, '^([^=]+)=(%d+):(%d+):(%a+):?(%a*):?([%a_]*):?([^:]*):?([^:]*):?([^:]*)$')
    local limit = limit_of(name, of_further, its_max, counts, kept == 'kept', its_algorithm, its_parameter, lanes, groups)
    table.insert(limit.maxima and of_groups or limits, limit)
    texts[#texts + 1] = limit.maxima and ',' .. text or nil
  end
  return limits, of_groups, table.concat(texts)
end

-- The limits in a text that has those of groups alone.
function limits_text.parse_groups(text)
  local of_groups = parsed_groups[text]
  if not of_groups then
    if parsed_groups_count == MOST_PARSED then
      parsed_groups, parsed_groups_count = {}, 0
    end
    local _
    _, of_groups = parse_further(text, {})
    parsed_groups[text], parsed_groups_count = of_groups, parsed_groups_count + 1
  end
  return of_groups
end

-- By their names, what a caller says of its calendars.
local function parse_calendars(text)
  local calendars = {}
  for name, start, ends, next_ends in string.gmatch(text, '@([^=]+)=(%d+):(%d+):(%d+)') do
    calendars[name] = { start = tonumber(start), ends = tonumber(ends), next_ends = tonumber(next_ends) }
  end
  return calendars
end

-- Returns the limits, of which `own` is the first, `of_groups`, those that each group has to itself, the maximum in the queue, which of them requests have set, the text of all these, as
-- it is stored as well, the part of it that has the further limits, and what the caller says of its calendars, by their names.
function limits_text.parse(text)
  local rules = parsed[text]
  if not rules then
    local length, window_mark, max, max_mark, queue_max, queue_mark, rest, of_calendars =
      string.match(text, '^(%d+)(%*?):(%d+)(%*?):(%d+)(%*?)([^@]*)(.*)$')
    local algorithm, parameter, further = string.match(rest, '^,=([%a_]+):([^,]+)(.*)$')
    further = further or rest
    local own = limit_of(nil, length, max, 'hits', false, algorithm or '', parameter)
    local limits, of_groups, groups_text = parse_further(further, { own })
    local calendars = parse_calendars(of_calendars)
    for _, limit in ipairs(limits) do
      limit.windows = calendars[limit.parameter]
    end
    local of_limits = string.sub(text, 1, -1 - #of_calendars)
    rules = {
      text = of_limits,
      stored_text = FORM .. ' ' .. of_limits,
      limits = limits,
      of_groups = of_groups,
      groups_text = groups_text,
      own = own,
      queue_max = tonumber(queue_max),
      window_is_set = window_mark == '*',
      max_is_set = max_mark == '*',
      queue_max_is_set = queue_mark == '*',
      further_text = further,
      calendars = calendars,
    }
    if parsed_count == MOST_PARSED then
      parsed, parsed_count = {}, 0
    end
    parsed[text], parsed_count = rules, parsed_count + 1
  end
  return rules
end

-- The limits that the state has stored: `<form> <limits>`, with the number of the form in which the whole state is stored.
-- Fails a call, before it has changed anything, if that is another form.
function limits_text.parse_stored(text)
  if string.sub(text, 1, #FORM + 1) ~= FORM .. ' ' then
    local form = string.match(text, '^(%d+) ') or '0'
    error(string.format('Redis holds form %s of the state, this version reads form %s', form, FORM), 0)
  end
  return limits_text.parse(string.sub(text, #FORM + 2))
end

-- To format numbers takes as long as two commands, so it is done only for limits that are not those of the rules or of the store.
function limits_text.to_store(state)
  return FORM .. ' ' .. (state.limits_changed and limits_text.format(state) or state.limits_text)
end

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
    own.parameter and string.format(',=%s:%s', own.algorithm, own.parameter) or '',
    state.further_text
  )
end

return limits_text
