-- Says which worker a call is about to be started on, and under which number of its ledger.
-- ARGV: epoch, call, worker, ledger.
-- Returns OK, also when the call is not open; MISSING, STALE, FORGOTTEN.
local epoch, call, worker, ledger = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'j' .. call)
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
if known[2] then
  redis.call('HSET', S, 'w' .. call, worker, 'g' .. call, ledger)
end
return OK
