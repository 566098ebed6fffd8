-- Gives cells of a quota back to its bucket (take_cells.lua).
-- KEYS: the bucket. ARGV: nanoseconds until one cell comes back; cells.
local known = redis.call('GET', KEYS[1])
if not known then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = known - ARGV[2] * (ARGV[1] / 1000)
if full <= now then
  redis.call('UNLINK', KEYS[1])
else
  redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1000)
end
return 0
