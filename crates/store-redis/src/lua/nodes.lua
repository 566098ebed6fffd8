-- The nodes whose announcement lives; forgets the others.
-- KEYS: the hash of nodes (announce.lua).
-- Returns what is said of each.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all, living = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local till, what = string.match(all[i + 1], '^(%d+):(.*)$')
  if till and tonumber(till) > now then
    living[#living + 1] = what
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return living
