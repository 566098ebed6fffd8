-- Appends events and notes how far their call has come. Runs on a full Redis too, so that calls that were
-- admitted can end.
-- ARGV: epoch, stream, after, most events a stream, most bytes a session, retention ms,
--       call ('' for none), seen, '1' if it ended, events...
-- Returns {incarnation of the last event's id, last, finished, bytes}; MISSING, STALE, FORGOTTEN, FULL.
local epoch, n, call, ended = ARGV[1], ARGV[2], ARGV[7], ARGV[9] == '1'
local after, most_events, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local retention, seen, FIRST = tonumber(ARGV[6]), tonumber(ARGV[8]), 10
local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 'h', 't', 'm', 's' .. n, 'j' .. call, 'q' .. call,
  'c' .. n)
local refused = refusal(known[1], epoch)
if refused then
  return refused
end
local log, open = known[2], known[9]
-- An owner writes only streams that are open, and these stay.
if not known[8] and n ~= '0' then
  return FORGOTTEN
end
local stream = parse_stream(known[8])
local count = #ARGV - FIRST + 1
local noted = call == '' or not open or (not ended and tonumber(known[10] or 0) >= seen)
if stream.last == after + count and noted then
  local bytes = tonumber(redis.call('HMGET', S, 'b')[1] or 0)
  return { nonce_of(log, known[11], stream.last), stream.last, stream.till > 0 and 1 or 0, bytes }
end
if stream.last ~= after then
  return stream.last < after and FORGOTTEN or STALE
end

local line = parse_line(known[5], known[6], known[3])
local time = now()
local more = 0
for i = FIRST, #ARGV do
  more = more + #ARGV[i]
end
if n == '0' and count > 0 then
  age_standalone(line, log, stream, known[7], retention, time)
end
if line.bytes + more > most_bytes then
  if n ~= '0' then
    local standalone = parse_stream(redis.call('HGET', S, 's0'))
    if age_standalone(line, log, standalone, known[7], retention, time) then
      save_stream(line, '0', standalone)
    end
  end
  while line.bytes + more > most_bytes and drop_first(line, log, nil, n) do end
  if line.bytes + more > most_bytes then
    save_stream(line, n, stream)
    save(line)
    return FULL
  end
end

local key, empty = events_of(log, n), stream.last == stream.trimmed
for i = FIRST, #ARGV do
  stream.last = stream.last + 1
  redis.call('RPUSH', key, ARGV[i])
end
-- Whether no call is left on the stream: then its expiry is that of a finished one.
local over = ended and n ~= '0' and stream.till == 0 and stream.open <= (open and 1 or 0)
if empty and count > 0 and not over then
  redis.call('PEXPIRE', key, life_of_events(tonumber(known[4])))
end
stream.bytes = stream.bytes + more
line.bytes = line.bytes + more
trim(line, log, n, stream, stream.last - most_events)

if open and ended then
  redis.call('HDEL', S, 'j' .. call, 'w' .. call, 'q' .. call, 'g' .. call)
  stream.open = stream.open - 1
elseif open then
  set(line, 'q' .. call, int(seen))
end
if over then
  finish(line, log, n, stream, retention, time)
end
save_stream(line, n, stream)
save(line)
return { nonce_of(log, known[11], stream.last), stream.last, stream.till > 0 and 1 or 0, line.bytes }
