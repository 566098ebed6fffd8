-- Makes a node the owner if nothing has changed since the claimer looked, who has seen that nobody holds
-- the session: the lease that decides that lies in another slot of a cluster.
-- ARGV: node, owner seen ('' for none), epoch seen.
-- Returns {epoch, record}; MISSING; HELD when another claim was quicker.
--
-- An epoch is the time of its claim, in microseconds: a Redis that lost its last writes in a failover must
-- not give one out twice, for then two owners would pass the fence.
local node, owner, epoch = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'o', 'r')
if not known[1] then
  return MISSING
end
if known[1] ~= epoch or (known[2] or '') ~= owner then
  return HELD
end
local time = redis.call('TIME')
local new = int(math.max(known[1] + 1, time[1] * 1000000 + time[2]))
redis.call('HSET', S, 'e', new, 'o', node)
return { new, known[3] }
