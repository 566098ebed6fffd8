-- Says which worker a call is about to be started on.
-- ARGV: epoch, call, worker.
-- Returns OK, also when the call is not open; MISSING or STALE.
local epoch, call, worker = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'j' .. call)
if not known[1] then
  return MISSING
end
if known[1] ~= epoch then
  return STALE
end
if known[2] then
  redis.call('HSET', S, 'w' .. call, worker)
end
return OK
