-- The kinds of limits. A limit has the functions of its kind as its methods: limits/fixed-window says which.

local fixed_window = require 'limits/fixed-window'
local further_ids = require 'limits/further-ids'
local own_ids = require 'limits/own-ids'

local kinds = {}

-- A limit with nothing approved, whose window begins at `start`. `declared`: as lib/limits-text parses it.
function kinds.begin(declared, start)
  return fixed_window.begin(declared, start, declared.name and further_ids or own_ids)
end

return kinds
