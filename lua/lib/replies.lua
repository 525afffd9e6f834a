-- The reply to a batch of checks.

local APPROVED, DENIED = 1, 0
-- The entries of a reply before its verdicts.
local HEAD = 3
