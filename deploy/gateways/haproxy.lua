-- The action `ask_sluice` of haproxy.cfg. It sends a check of the key in txn.sluice_key, which is percent-encoded;
-- the check may wait if txn.sluice_can_wait is set. Afterwards txn.sluice_status has the status of the answer, or 0 if
-- none came, txn.sluice_retry_after its Retry-After, and txn.sluice_ratelimit and others its headers about the limit.

-- Over a socket: with core.httpclient, the check of a client that disconnects would keep waiting.
local HOST, PORT = '127.0.0.1', 8192
-- The headers about the limit; txn.sluice_x_ratelimit_limit has the third.
local QUOTA = { 'ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset' }
-- No time limit of its own; the limits of haproxy.cfg apply.
local SECONDS = 86400
-- If Sluice uses tokens: one with the scope `check`.
local AUTHORIZATION = nil

local function request_text(txn)
  local key = txn:get_var('txn.sluice_key')
  local query = txn:get_var('txn.sluice_can_wait') and '?canWait=true' or ''
  local lines = { 'POST /rate/' .. key .. query .. ' HTTP/1.1', 'Host: sluice', 'Content-Length: 0', 'Connection: close' }
  for _, name in ipairs({ 'X-Correlation-ID', 'traceparent' }) do
    local value = txn.f:req_fhdr(name)
    if value then lines[#lines + 1] = name .. ': ' .. value end
  end
  if AUTHORIZATION then lines[#lines + 1] = 'Authorization: ' .. AUTHORIZATION end
  return table.concat(lines, '\r\n') .. '\r\n\r\n'
end

-- The status, or nil if none came, and the headers by their names in lower case.
local function read_head(socket)
  local line = socket:receive('*l')
  local status = tonumber((line or ''):match('^HTTP/1%.%d (%d%d%d)'))
  local headers = {}
  while line and line ~= '' do
    line = socket:receive('*l')
    local name, value = (line or ''):match('^([^:]+):%s*(.-)%s*$')
    if name then headers[name:lower()] = value end
  end
  return status, headers
end

local function ask(txn)
  local socket = core.tcp()
  socket:settimeout(SECONDS)
  local status, headers
  if socket:connect(HOST, PORT) and socket:send(request_text(txn)) then status, headers = read_head(socket) end
  socket:close()
  -- Sluice sends the id of the request with every answer. An answer without it is HAProxy's: Sluice was unreachable.
  if not status or not headers['x-correlation-id'] then return 0, {} end
  return status, headers
end

core.register_action('ask_sluice', { 'http-req' }, function(txn)
  local status, headers = ask(txn)
  txn:set_var('txn.sluice_status', status)
  txn:set_var('txn.sluice_retry_after', headers['retry-after'] or '1')
  for _, name in ipairs(QUOTA) do
    if headers[name] then txn:set_var('txn.sluice_' .. name:gsub('-', '_'), headers[name]) end
  end
end)
