-- Takes cells of a quota from its bucket, which holds one value: when it will be full, in microseconds of this server's clock.
-- KEYS: the bucket. ARGV: nanoseconds until one cell comes back; cells in a full bucket; cells that are needed; cells that are wanted.
-- Returns the cells that were taken, and if none were, microseconds until there are as many as are needed.
local interval, burst, need, want = ARGV[1] / 1000, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local empty = now + burst * interval
-- A clock that was set back, or a bucket that was larger, leaves no debt that this bucket cannot have.
local full = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or now), now), empty)
-- Today's microseconds leave a number no more than two binary places. What rounding lost is not a cell: half a microsecond is
-- more than that, and less than any interval.
local free = math.floor((empty - full + 0.5) / interval)
if free < need then
  return {0, math.ceil(need * interval - (empty - full))}
end
local cells = math.min(free, want)
full = full + cells * interval
redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1000)
return {cells, 0}
