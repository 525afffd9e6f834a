-- The ids of the approvals that one check with hits takes: the request id itself, then `<id>#2` and so on.
-- src/limiter/hits.ts names them alike.

-- Adds them to a list of ids.
local function append_hits(ids, id, hits)
  ids[#ids + 1] = id
  for hit = 2, hits do
    ids[#ids + 1] = id .. '#' .. hit
  end
end
