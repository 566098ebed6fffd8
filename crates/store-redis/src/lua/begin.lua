-- Journals calls with the stream that they are answered on. Refused by a Redis that is full, unless they run already.
-- ARGV: epoch, stream, its field, how it stands when it is opened ('' to join it), the delivery's field ('' if it is joined), then the
--       field of each call, and its entry.
-- Returns the incarnation of the log, of a stream that was opened; {incarnation, stream, last, '1' if other calls were begun for the
-- delivery before}; an empty array where another stream has the number; MISSING, STALE, FORGOTTEN, GONE, FULL. A repetition finds it
-- done.
local stream, opened, delivery = ARGV[3], ARGV[4], ARGV[5]
local known = redis.call('HMGET', S, 'e', 'l', 'b', stream, ARGV[6], delivery)
local refused = refusal(known[1], ARGV[1])
if refused then
  return refused
end
local log, stands = known[2], known[4]
if known[5] then
  local begun = string.match(known[5], '^%d+')
  return { log, begun, string.match(redis.call('HGET', S, 's' .. begun) or '0', '^%d+'), 0 }
end
if opened ~= '' and known[6] then
  return { log, known[6], 0, 1 }
end
if known[3] + MORE > MOST_BYTES then
  return FULL
end
if opened ~= '' then
  if stands then
    return {}
  end
  redis.call('HSET', S, stream, opened, delivery, ARGV[2], unpack(ARGV, 6))
  return log
end
if not stands and stream ~= 's0' then
  return GONE
end
local last, before, open, till, after = string.match(stands or '0:0:0:0:0:', '^(%d+)(:%d+:%d+:)(%d+):(%d+)(.*)$')
if till ~= '0' then
  return GONE
end
redis.call('HSET', S, stream, last .. before .. open + (#ARGV - 5) / 2 .. ':0' .. after, unpack(ARGV, 6))
return { log, ARGV[2], last, 0 }
