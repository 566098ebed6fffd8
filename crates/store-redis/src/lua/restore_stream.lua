-- Enters an open stream again as its owner knows it, where Redis has forgotten of it. Runs on a full Redis too.
-- ARGV: epoch, stream, last, nonce of the last event's id, delivery ('' if not known), how many calls,
--       for each: call, entry, worker ('' for none), seen; then the events up to the last that are still known.
-- Returns OK; MISSING, STALE, FORGOTTEN.
local epoch, n, last, nonce, delivery, calls = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local FIRST = 7
local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 'h', 't', 's' .. n)
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
local log, stream = known[2], parse_stream(known[7])
if stream.till > 0 then
  return OK
end
local line = parse_line(known[5], known[6], known[3])
if not known[7] or stream.last < last then
  local key, first = events_of(log, n), FIRST + 4 * calls
  redis.call('UNLINK', key)
  line.bytes = line.bytes - stream.bytes
  stream.bytes, stream.last, stream.trimmed = 0, last, last - (#ARGV - first + 1)
  for i = first, #ARGV do
    redis.call('RPUSH', key, ARGV[i])
    stream.bytes = stream.bytes + #ARGV[i]
  end
  line.bytes = line.bytes + stream.bytes
  if #ARGV >= first then
    redis.call('PEXPIRE', key, life_of_events(tonumber(known[4])))
  end
  if nonce ~= log then
    set(line, 'c' .. n, int(math.max(stream.trimmed - 1, 0)) .. ':' .. nonce)
  end
end
if delivery ~= '' and n ~= '0' then
  stream.delivery = delivery
  set(line, 'd' .. delivery, n)
end
for i = FIRST, FIRST + 4 * calls - 1, 4 do
  local call = ARGV[i]
  if redis.call('HEXISTS', S, 'j' .. call) == 0 then
    stream.open = stream.open + 1
  end
  set(line, 'j' .. call, n .. ':' .. ARGV[i + 1])
  set(line, 'q' .. call, ARGV[i + 3])
  -- The entry has it.
  redis.call('HDEL', S, 'g' .. call)
  if ARGV[i + 2] ~= '' then
    set(line, 'w' .. call, ARGV[i + 2])
  end
end
save_stream(line, n, stream)
save(line)
return OK
