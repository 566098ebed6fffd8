-- Journals calls with the stream that they are answered on. Refused by a Redis that is full.
-- ARGV: epoch, stream, '1' to open it, delivery, most bytes a session, then for each call: call, entry,
--       worker ('' for none). A stream that is opened gets that number, or the next that is free.
-- Returns {incarnation, stream, last, '1' if other calls were begun for the delivery before};
-- MISSING, STALE, FORGOTTEN, GONE, FULL. A repetition finds it done.
local epoch, n, opens, delivery, most_bytes, FIRST = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4], tonumber(ARGV[5]), 6
local calls = (#ARGV - FIRST + 1) / 3
local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 'h', 't', 'x', 'n', 's' .. n,
  'j' .. ARGV[FIRST], 'd' .. delivery)
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
local log = known[2]
if known[10] then
  local begun = string.match(known[10], '^%d+')
  return { log, tonumber(begun), parse_stream(redis.call('HGET', S, 's' .. begun)).last, 0 }
end
if opens and known[11] then
  return { log, tonumber(known[11]), 0, 1 }
end
local stream = parse_stream(not opens and known[9])
if not opens and n ~= '0' and (not known[9] or stream.till > 0) then
  return GONE
end

-- At most one stream is finished for each that begins, so the line gets shorter.
local line, time = parse_line(known[5], known[6], known[3]), now()
for _ = 1, 4 * LOOKED_FOR_EVERY do
  if not drop_first(line, log, time) then
    break
  end
end
while line.bytes >= most_bytes and drop_first(line, log) do end
if line.bytes >= most_bytes then
  save(line)
  return FULL
end

if opens then
  while redis.call('HEXISTS', S, 's' .. n) == 1 do
    n = int(n % 4294967295 + 1)
  end
  stream.delivery = delivery
  set(line, 'n', int(known[8] + 1))
  set(line, 'd' .. delivery, n)
end
stream.open = stream.open + calls
save_stream(line, n, stream)
for i = FIRST, #ARGV, 3 do
  set(line, 'j' .. ARGV[i], n .. ':' .. ARGV[i + 1])
  if ARGV[i + 2] ~= '' then
    set(line, 'w' .. ARGV[i], ARGV[i + 2])
  end
end
save(line)
restart_idle(log, tonumber(known[4]), known[4], known[7], time)
return { log, tonumber(n), stream.last, 0 }
