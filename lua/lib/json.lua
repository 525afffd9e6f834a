-- JSON in Redis, for what people read there. cjson knows no order of fields, and writes 14 digits of a number: too few for a
-- time in us. It reads as many as a double has. An empty table is `{}` for both.

local json = {}

-- The text of a number, with which it is read back as it was.
local function number_text(number)
  return string.format(number % 1 == 0 and '%.0f' or '%.17g', number)
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

-- The fields that have these names and say something, in this order, as an object without its braces. A field that is absent, 0,
-- false or an empty table says nothing.
function json.fields(fields, names)
  local texts = {}
  for i = 1, #names do
    local value = fields[names[i]]
    if value and value ~= 0 and (type(value) ~= 'table' or next(value) ~= nil) then
      texts[#texts + 1] = '"' .. names[i] .. '":' .. encode(value)
    end
  end
  return table.concat(texts, ',')
end

-- A field with this text as its value, without the braces of an object; '' for an object without fields.
function json.field(name, text)
  return text == '{}' and '' or '"' .. name .. '":' .. text
end

-- Several texts of fields as one. Each may be ''.
function json.join(...)
  local texts = {}
  for _, text in ipairs({ ... }) do
    if text ~= '' then
      texts[#texts + 1] = text
    end
  end
  return table.concat(texts, ',')
end

function json.object(fields)
  return '{' .. fields .. '}'
end

return json
