-- Notes at the lease of a node that sessions are claimed although it lives.
-- KEYS: the lease: when it began, then ":" and how often it was contested, if it was.
-- Returns how long the lease lives on without a renewal, ms (at least 1), or 0 where there is no lease.
local lease = redis.call('GET', KEYS[1])
if not lease then
  return 0
end
local began, times = string.match(lease, '^(%d+):?(%d*)$')
redis.call('SET', KEYS[1], string.format('%s:%d', began, (tonumber(times) or 0) + 1), 'KEEPTTL')
return math.max(redis.call('PTTL', KEYS[1]), 1)
