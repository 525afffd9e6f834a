-- Keeps the report of a replica for the dashboard. The reports expire together if no replica reports any more.
--
-- KEYS  1 reports
-- ARGV  1 replica id, 2 its report, 3 how long reports are kept, in ms
-- Reply 1

local function run(KEYS, ARGV)
  local reports, replica, report, kept_ms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
  redis.call('HSET', reports, replica, report)
  redis.call('PEXPIRE', reports, kept_ms)
  return 1
end
