-- Settles which pool keeps each contested name: the node that says so first decides, for as long as that pool is there.
-- KEYS: the hash of names, name -> pool. ARGV: life ms, the number of pools, the pools, then all contested names, each with
-- the pool that keeps it as the node sees. Names that are contested no more are forgotten.
-- Returns the names, each with its pool.
local life, count, pools = ARGV[1], tonumber(ARGV[2]), {}
for i = 3, 2 + count do
  pools[ARGV[i]] = true
end
local settled = {}
for i = 3 + count, #ARGV, 2 do
  local kept = redis.call('HGET', KEYS[1], ARGV[i])
  settled[#settled + 1] = ARGV[i]
  settled[#settled + 1] = kept and pools[kept] and kept or ARGV[i + 1]
end
redis.call('UNLINK', KEYS[1])
for i = 1, #settled, 2 do
  redis.call('HSET', KEYS[1], settled[i], settled[i + 1])
end
if #settled > 0 then
  redis.call('PEXPIRE', KEYS[1], life)
end
return settled
