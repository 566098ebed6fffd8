-- Enters an open stream again as its owner knows it, where Redis has forgotten of it. Runs on a full Redis too.
-- ARGV: epoch, stream, last, nonce of the last event's id, delivery ('' if not known), how many calls are open, how many have
--       ended; for each open one: call, entry, seen; the calls that have ended; then the events up to the last that are still known.
-- Returns OK; MISSING, STALE, FORGOTTEN.
local epoch, n, last, nonce, delivery = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local calls, ended, FIRST = tonumber(ARGV[6]), tonumber(ARGV[7]), 8
local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 's' .. n)
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
local log, bytes, stream, changed = known[2], tonumber(known[3]), parse_stream(known[5]), {}
if stream.till > 0 then
  return OK
end
local function set(field, value)
  changed[#changed + 1] = field
  changed[#changed + 1] = value
end
if not known[5] or stream.last < last then
  local key, first = events_of(log, n), FIRST + 3 * calls + ended
  redis.call('UNLINK', key)
  bytes = bytes - stream.bytes
  stream.bytes, stream.last, stream.trimmed = 0, last, last - (#ARGV - first + 1)
  for i = first, #ARGV do
    redis.call('RPUSH', key, ARGV[i])
    stream.bytes = stream.bytes + #ARGV[i]
  end
  bytes = bytes + stream.bytes
  if #ARGV >= first then
    redis.call('PEXPIRE', key, life_of_events(tonumber(known[4])))
  end
  if nonce ~= log then
    set('c' .. n, int(math.max(stream.trimmed - 1, 0)) .. ':' .. nonce)
  end
end
if delivery ~= '' and n ~= '0' then
  stream.delivery = delivery
  set('d' .. delivery, n)
end
for i = FIRST, FIRST + 3 * calls - 1, 3 do
  local call = ARGV[i]
  if redis.call('HEXISTS', S, 'j' .. call) == 0 then
    stream.open = stream.open + 1
  end
  set('j' .. call, n .. ':' .. ARGV[i + 1])
  set('q' .. call, ARGV[i + 2])
  -- The entry has them.
  redis.call('HDEL', S, 'w' .. call, 'g' .. call)
end
-- The entry of a call whose end was lost would have a later owner end it once more.
for i = FIRST + 3 * calls, FIRST + 3 * calls + ended - 1 do
  local call = ARGV[i]
  if redis.call('HDEL', S, 'j' .. call, 'q' .. call, 'w' .. call, 'g' .. call) > 0 then
    stream.open = math.max(stream.open - 1, 0)
  end
end
set('s' .. n, string.format('%d:%d:%d:%d:%d:%s',
  stream.last, stream.trimmed, stream.bytes, stream.open, stream.till, stream.delivery))
set('b', int(bytes))
redis.call('HSET', S, unpack(changed))
return OK
