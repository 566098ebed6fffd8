-- Enters a claim again that Redis has forgotten, with the session's record as its owner knows it.
-- ARGV: epoch, owner, record, idle ms.
-- Returns OK, MISSING, or STALE if there is a newer claim.
local epoch, owner, record, idle = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'l', 'i', 'x')
local refused = refusal(known[1], epoch)
if refused and refused ~= FORGOTTEN then
  return refused
end
redis.call('HSET', S, 'e', epoch, 'o', owner, 'r', record)
restart_idle(known[2], tonumber(idle), known[3], known[4], now())
return OK
