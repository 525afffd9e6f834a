-- What `pcall` caught, as an error reply. Redis 7 raises a table, which is one; Redis 6 raises text,
-- with the place in the script before what the command said.
local function error_reply(caught)
  if type(caught) == 'table' then
    return caught
  end
  local message = string.gsub(tostring(caught), '^@?user_script:%s?%d+: %-?', '')
  return redis.error_reply(string.match(message, '^%u+ ') and message or 'ERR ' .. message)
end

-- What `decide` returns, or its error as a reply: one key that fails does not harm the next.
local function reply_of(decide, ...)
  local succeeded, reply = pcall(decide, ...)
  return succeeded and reply or error_reply(reply)
end
