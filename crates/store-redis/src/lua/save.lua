-- Replaces the record and restarts the idle time; gives the session up if asked to.
-- ARGV: epoch, record, idle ms, '1' to release.
-- Returns OK, MISSING or STALE.
local epoch, record, idle, release = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'l', 'i', 'x')
if not known[1] then
  return MISSING
end
if known[1] ~= epoch then
  return STALE
end
redis.call('HSET', S, 'r', record)
if release == '1' then
  redis.call('HDEL', S, 'o')
end
restart_idle(known[2], tonumber(idle), known[3], known[4], now())
return OK
