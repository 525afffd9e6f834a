-- What a caller knows of the time before its call, as the text `<loaded>:<since>:<until>` of times in ms by Redis's
-- clock, with 0 for a time that it does not know:
--   loaded        when the caller loaded the rules that its limits come from
--   since, until  from when to when Redis has answered the caller. Redis was not down for longer than CONTACT_GAP of a
--                 lease in between.
-- src/redis/caller-history.ts builds it. Scripts parse it only when it decides something, which is rare.

local history = {}

-- Less than the shortest silence of a replica that counts: a replica renews its lease when a third of it is over.
local CONTACT_GAP = 0.5

function history.read(call)
  local loaded, since, until_ms = string.match(call.history, '^(%d+):(%d+):(%d+)$')
  return tonumber(loaded), tonumber(since), tonumber(until_ms)
end

-- Whether Redis was up from `time` on, or for a whole lease, in which each living replica would have renewed its own
-- lease. Then a replica that has been silent since is dead or cut off.
function history.was_up_since(call, time)
  local _, since, until_ms = history.read(call)
  local is_up_to_date = until_ms > call.now_ms - call.lease * CONTACT_GAP and until_ms <= call.now_ms
  return is_up_to_date and (since <= time or since <= call.now_ms - call.lease)
end

return history
