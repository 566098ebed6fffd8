-- Renews the lease of a node, or begins it.
-- KEYS: the lease. ARGV: life ms.
-- Returns when the lease began, in microseconds since 1970, and what contest_lease.lua has added: while that stays the
-- same, it has neither lapsed nor been contested.
local since = redis.call('GET', KEYS[1])
if since then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return since
end
local time = redis.call('TIME')
since = string.format('%d', time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], since, 'PX', ARGV[1])
return since
