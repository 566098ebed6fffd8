-- Says what there is to know of a node, for a while.
-- KEYS: the hash of nodes, node -> "<until>:<what>". ARGV: node, what, life ms.
-- Returns 0.
local node, what, life = unpack(ARGV)
local time = redis.call('TIME')
local till = time[1] * 1000 + math.floor(time[2] / 1000) + life
redis.call('HSET', KEYS[1], node, string.format('%d:%s', till, what))
-- The hash goes with the last of its nodes.
if redis.call('PTTL', KEYS[1]) < tonumber(life) then
  redis.call('PEXPIRE', KEYS[1], life)
end
return 0
