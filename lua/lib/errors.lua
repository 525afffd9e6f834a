-- The error reply for an error that `pcall` caught. Redis 7 raises a table, which is a reply already.
-- Redis 6 raises a text: the position in the script, then the command's message.

local errors = {}
function errors.reply(caught)
  if type(caught) == 'table' then
    return caught
  end
  local message = string.gsub(tostring(caught), '^@?user_script:%s?%d+: %-?', '')
  return redis.error_reply(string.match(message, '^%u+ ') and message or 'ERR ' .. message)
end

-- Returns the reply of `decide`, or its error as a reply, so that a key that fails does not harm the next.
function errors.reply_of(decide, ...)
  local succeeded, reply = pcall(decide, ...)
  return succeeded and reply or errors.reply(reply)
end

return errors
