-- The requests of wrk, and the check of the answers.
-- wrk ... -- <name of the keys> <how many keys> <'1' if denials are right answers> <'1' if one key after the other>
--   <path> <body> <checks in a call> <text of an approval> <its length> <text of a denial> <its length>
--   <milliseconds to pause after an answer, on average>
-- KEY stands for a key in path and body; a body of several checks is an array. An empty length means any length.

-- How many bodies with several checks are built in advance.
local BODIES = 1000

local name, keys, refusals, in_order, pause
local path, body
local approved, refused
local last = 0
local prepared

local function next_key()
  if not in_order then return name .. '-' .. math.random(keys) end
  last = last % keys + 1
  return name .. '-' .. last
end

-- A function that fills a template, which is parsed once.
local function filled(template)
  local from, to = template:find('KEY', 1, true)
  if not from then return function() return template end end
  local before, after = template:sub(1, from - 1), template:sub(to + 1)
  return function(key) return before .. key .. after end
end

local function is(answer, expected)
  if expected.length and #answer ~= expected.length then return false end
  return answer:find(expected.text, 1, true) ~= nil
end

local function call_of(checks)
  local elements = {}
  for i = 1, checks do elements[i] = body(next_key()) end
  return wrk.format('POST', path(), nil, '[' .. table.concat(elements, ',') .. ']')
end

function init(args)
  name, keys, refusals, in_order = args[1], tonumber(args[2]), args[3] == '1', args[4] == '1'
  path = filled(args[5])
  local has_body = args[6] ~= ''
  body = has_body and filled(args[6]) or function() end
  local checks = tonumber(args[7])
  approved = { text = args[8], length = tonumber(args[9]) }
  refused = { text = args[10], length = tonumber(args[11]) }
  pause = tonumber(args[12])
  wrong, refused_count, example = 0, 0, ''
  math.randomseed(os.time())
  if has_body then wrk.headers['Content-Type'] = 'application/json' end
  if checks > 1 then
    prepared = {}
    for i = 1, keys > 1 and BODIES or 1 do prepared[i] = call_of(checks) end
  end
  -- wrk calls this function if it exists. Pauses differ, so that callers don't come all at once.
  if pause > 0 then
    function delay() return math.random(1, 2 * pause - 1) end
  end
end

function request()
  if prepared then return prepared[math.random(#prepared)] end
  local key = next_key()
  return wrk.format('POST', path(key), nil, body(key))
end

function response(status, _, answer)
  local right = status == 200 and is(answer, approved)
    or refusals and status == 429 and is(answer, refused)
  if status == 429 then refused_count = refused_count + 1 end
  if not right then
    wrong = wrong + 1
    example = status .. ' ' .. answer
  end
end

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function done(summary, latency)
  local bad, refused, example = 0, 0, ''
  for _, thread in ipairs(threads) do
    bad = bad + thread:get('wrong')
    refused = refused + thread:get('refused_count')
    example = example .. thread:get('example')
  end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"answers":%d,"seconds":%f,"wrong":%d,"refused":%d,"failed":%d,"p50Micros":%d,"p99Micros":%d}\n',
    summary.requests, summary.duration / 1e6, bad, refused,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)
  ))
  io.write('EXAMPLE ' .. example .. '\n')
end
