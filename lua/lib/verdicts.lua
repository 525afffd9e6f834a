-- The reply to a batch of checks has HEAD entries, and then a verdict for each check: one of these, or the ticket of
-- its place in the queue.

local verdicts = {
  HEAD = 3,
  APPROVED = 1,
  DENIED = 0,
  QUEUE_FULL = -1,
  NO_PLACE = -2,
  KEY_FULL = -3,
  TOO_MANY_HITS = -4,
  PAUSED = -5,
  STORE_FULL = -6,
  ID_USED = -7,
  OTHER_HITS = -8,
  OTHER_HOLD = -9,
  WAIT_EXPIRED = -10,
  OTHER_HOLDER = -11,
  TAKEN_OVER = -12,
  QUEUE_FULL_OF_GROUP = -13,
  -- Less the microseconds until the turn of the check.
  TURN_TOO_LATE = -14,
}

return verdicts
