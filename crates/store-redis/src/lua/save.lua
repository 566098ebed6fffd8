-- Replaces the record and restarts the idle time; gives the session up if asked to.
-- ARGV: epoch, record, idle ms, '1' to release.
-- Returns OK, MISSING, STALE or FORGOTTEN.
local epoch, record, idle, release = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'l', 'i', 'x')
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
redis.call('HSET', S, 'r', record)
if release == '1' then
  redis.call('HDEL', S, 'o')
end
restart_idle(known[2], tonumber(idle), known[3], known[4], now())
return OK
