-- The kinds of limits. A limit has the functions of its kind as its methods: limits/fixed-window says which.

local calendar_window = require 'limits/calendar-window'
local fixed_window = require 'limits/fixed-window'
local further_ids = require 'limits/further-ids'
local own_ids = require 'limits/own-ids'
local sliding_window = require 'limits/sliding-window'
local token_bucket = require 'limits/token-bucket'

local kinds = {}

local BY_ALGORITHM = {
  fixed_window = fixed_window, calendar = calendar_window, sliding_window = sliding_window, token_bucket = token_bucket,
}

-- A limit with nothing approved, whose first window begins at `start`. `declared`: as lib/limits-text parses it.
function kinds.begin(declared, start)
  return BY_ALGORITHM[declared.algorithm].begin(declared, start, declared.name and further_ids or own_ids)
end

-- Whether a limit, of a state or of rules, counts in windows, at whose ends other rules come into force.
function kinds.has_boundary(limit)
  return BY_ALGORITHM[limit.algorithm].has_boundary or false
end

-- Whether waiters for any of these limits, as rules declare them, are let go at an even pace.
function kinds.have_pace(declared)
  for _, limit in ipairs(declared) do
    if BY_ALGORITHM[limit.algorithm].has_pace then
      return true
    end
  end
  return false
end

-- Whether a limit is as rules declare it, up to its maximum and the length of its window.
function kinds.is_same(limit, declared)
  return limit.algorithm == declared.algorithm and limit.parameter == declared.parameter
end

return kinds
