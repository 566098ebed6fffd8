-- Journals calls with the stream that they are answered on. Refused by a Redis that is full, unless they run already.
-- ARGV: epoch, most bytes a session, retention ms, bytes needed, stream, '1' to open it, how many calls, then what becomes of the
--       hash: the stream's field, and how it stands if it is opened; then, if so, the delivery's field and the stream; then the
--       field of each call, and its entry.
-- Returns {incarnation, stream, last, '1' if other calls were begun for the delivery before};
-- an empty array where another stream has the number; MISSING, STALE, FORGOTTEN, GONE, FULL. A repetition finds it done.
local epoch, n, opens = ARGV[1], ARGV[5], ARGV[6] == '1'
local known
if opens then
  known = redis.call('HMGET', S, 'e', 'l', 'b', ARGV[8], ARGV[12], ARGV[10])
else
  known = redis.call('HMGET', S, 'e', 'l', 'b', ARGV[8], ARGV[10])
end
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
local log, stream = known[2], known[4]
if known[5] then
  local begun = string.match(known[5], '^%d+')
  return { log, begun, string.match(redis.call('HGET', S, 's' .. begun) or '0', '^%d+'), 0 }
end
if opens and known[6] then
  return { log, known[6], 0, 1 }
end
if known[3] + ARGV[4] > tonumber(ARGV[2]) then
  return FULL
end
if opens then
  if stream then
    return {}
  end
  redis.call('HSET', S, unpack(ARGV, 8))
  return { log, n, 0, 0 }
end
if not stream and n ~= '0' then
  return GONE
end
local last, before, open, till, after = string.match(stream or '0:0:0:0:0:', '^(%d+)(:%d+:%d+:)(%d+):(%d+)(.*)$')
if till ~= '0' then
  return GONE
end
redis.call('HSET', S, ARGV[8], last .. before .. open + ARGV[7] .. ':0' .. after, unpack(ARGV, 10))
return { log, n, last, 0 }
