-- What wrk asks for, and whether the answers are right.
-- wrk ... -- <name of the keys> <how many keys> <'1' if refusals are right answers> <'1' if one key after the other>
local name, keys, refusals, in_order
local last = 0

function init(args)
  name, keys, refusals, in_order = args[1], tonumber(args[2]), args[3] == '1', args[4] == '1'
  wrong, example = 0, ''
  math.randomseed(os.time())
end

local function next_key()
  if not in_order then return math.random(keys) end
  last = last % keys + 1
  return last
end

function request()
  return wrk.format('POST', '/rate/' .. name .. '-' .. next_key())
end

function response(status, _, body)
  local approved = status == 200 and #body == 53 and body:sub(1, 15) == '{"request_id":"'
  local refused = refusals and status == 429 and body:sub(1, 30) == '{"error":"rate limit exceeded"'
  if not approved and not refused then
    wrong = wrong + 1
    example = status .. ' ' .. body
  end
end

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function done(summary, latency)
  local bad, example = 0, ''
  for _, thread in ipairs(threads) do
    bad = bad + thread:get('wrong')
    example = example .. thread:get('example')
  end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"answers":%d,"seconds":%f,"wrong":%d,"failed":%d,"p50Micros":%d,"p99Micros":%d}\n',
    summary.requests, summary.duration / 1e6, bad,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)
  ))
  io.write('EXAMPLE ' .. example .. '\n')
end
