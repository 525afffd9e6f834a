-- JSON in Redis, for what people read there. cjson knows no order of fields, and writes 14 digits of a number: too few for a
-- time in us. It reads as many as a double has. An empty table is `{}` for both.

local digits = require 'lib/digits'

local json = {}

local MOST_INTEGER = 2 ^ 53

-- The text of a number, with which it is read back as it was.
local function number_text(number)
  if number % 1 == 0 and number < MOST_INTEGER then
    return digits(number)
  end
  return string.format('%.17g', number)
end

local encode

local function encode_list(list)
  local texts = {}
  for i, value in ipairs(list) do
    texts[i] = encode(value)
  end
  return '[' .. table.concat(texts, ',') .. ']'
end

-- An object with its fields in alphabetical order.
local function encode_table(fields)
  if #fields > 0 then
    return encode_list(fields)
  end
  local names = {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    names[i] = cjson.encode(name) .. ':' .. encode(fields[name])
  end
  return '{' .. table.concat(names, ',') .. '}'
end

function encode(value)
  local kind = type(value)
  if kind == 'number' then
    return number_text(value)
  end
  return kind == 'table' and encode_table(value) or cjson.encode(value)
end

-- Fields are a text, '' if there are none: a list of texts would take four times as long.

function json.join(fields, more)
  return (fields == '' and more) or (more == '' and fields) or fields .. ',' .. more
end

-- Returns the fields with one more, which has this text as its value, unless the text says nothing: nil, false or an object without
-- fields.
function json.add(fields, name, text)
  return text and text ~= '{}' and json.join(fields, '"' .. name .. '":' .. text) or fields
end

-- Returns the fields of a table that have these names and say something, in this order. A field that is absent, 0, false or an empty
-- table says nothing.
function json.fields(from, names)
  local fields = ''
  for i = 1, #names do
    local value = from[names[i]]
    if value and value ~= 0 and (type(value) ~= 'table' or next(value) ~= nil) then
      fields = json.add(fields, names[i], encode(value))
    end
  end
  return fields
end

function json.object(fields)
  return '{' .. fields .. '}'
end

return json
