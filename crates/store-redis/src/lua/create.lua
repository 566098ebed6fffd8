-- Enters a session. Refused by a Redis that is full.
-- ARGV: owner, principal, record, idle ms, incarnation of its log.
-- Returns OK, or HELD when there is such a session; the same owner's repetition finds it done.
local owner, principal, record, idle, log = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'o')
if known[1] then
  if known[1] == '1' and known[2] == owner then
    return OK
  end
  return HELD
end
-- Older releases cannot journal a call without an n.
redis.call('HSET', S, 'e', '1', 'o', owner, 'p', principal, 'r', record, 'i', idle, 'l', log,
  'n', '1', 'b', '0', 'x', int(now()))
redis.call('PEXPIRE', S, idle)
return OK
