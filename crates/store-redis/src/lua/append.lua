-- Appends events and notes how far their call has come. Runs on a full Redis too, so that calls that were
-- admitted can end.
-- ARGV: epoch, stream, after, call ('' for none), its last event with these ('' if it ended), events...
-- Returns twice the bytes, and one more if the stream is finished, where all its ids have the log's nonce, since a table takes long;
-- {that, incarnation of the log, nonces of the stream's ids} where a claim has given others; MISSING, STALE, FORGOTTEN, GONE, FULL.
local n, after, call, seen, FIRST = ARGV[2], ARGV[3], ARGV[4], ARGV[5], 6
local field, ended = 's' .. n, call ~= '' and seen == ''
local function reply(log, marks, finished, bytes)
  local stands = bytes * 2 + finished
  return marks and { stands, log, marks } or stands
end
local known = redis.call('HMGET', S, 'e', 'l', 'b', field, 'c' .. n, 't')
local refused = refusal(known[1], ARGV[1])
if refused then
  return refused
end
-- An owner writes only streams that are open, and these stay.
if not known[4] and n ~= '0' then
  return FORGOTTEN
end
local log, bytes, marks, count = known[2], known[3] + 0, known[5], #ARGV - FIRST + 1
local last, trimmed, size, open, till, delivery =
  string.match(known[4] or '0:0:0:0:0:', '^(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
if last ~= after then
  last, after = last + 0, after + 0
  -- A repetition finds its events there, and its call as far as it says.
  local noted = call == ''
  if last == after + count and not noted then
    local stands = redis.call('HMGET', S, 'j' .. call, 'q' .. call)
    noted = not stands[1] or (not ended and tonumber(stands[2] or 0) >= tonumber(seen))
  end
  if last == after + count and noted then
    return reply(log, marks, till == '0' and 0 or 1, bytes)
  end
  return last < after and FORGOTTEN or STALE
end
if MORE > 0 and bytes + MORE > MOST_BYTES then
  return FULL
end

local events = S .. ':' .. log .. ':' .. n
if count > 0 then
  if till ~= '0' then
    return GONE
  end
  local length
  for i = FIRST, #ARGV, 1000 do
    length = redis.call('RPUSH', events, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  last, size, bytes = last + count, size + MORE, bytes + MORE
  if length < last - trimmed then
    -- Somebody else has removed some: what is left is counted again, and those are told to be gone.
    bytes, size, trimmed = bytes - size, 0, last - length
    for _, event in ipairs(redis.call('LRANGE', events, 0, -1)) do
      size = size + #event
    end
    bytes = bytes + size
  end
  local surplus = length - MOST_EVENTS
  if surplus > 0 then
    for _, event in ipairs(redis.call('LPOP', events, surplus)) do
      size, bytes = size - #event, bytes - #event
    end
    trimmed = trimmed + surplus
  end
  -- The first events get their expiry, unless they end the stream (below); idle.lua restarts it.
  if length == count and not (ended and open == '1' and n ~= '0') then
    redis.call('PEXPIRE', events, int(math.ceil(redis.call('HGET', S, 'i') * LIFE_OF_EVENTS) + 1000))
  end
end

-- The open call is taken out of the journal; the stream of the last one is finished, and kept for a while.
if ended and redis.call('HDEL', S, 'j' .. call, 'q' .. call, 'w' .. call, 'g' .. call) > 0 then
  if open == '1' and n ~= '0' then
    local time, tail = redis.call('TIME'), known[6] or '0'
    till = int(time[1] * 1000 + time[2] / 1000 + RETENTION)
    redis.call('PEXPIRE', events, RETENTION)
    redis.call('HSET', S, field, string.format('%d:%d:%d:0:%s:%s', last, trimmed, size, till, delivery), 'b', bytes,
      't', tail + 1, 'f' .. tail, n .. ':' .. till)
    return reply(log, marks, 1, bytes)
  end
  open = open - 1
end
local stands = string.format('%d:%d:%d:%d:%s:%s', last, trimmed, size, open, till, delivery)
-- A call that has ended has no last event; with new events it is known to be open.
if call ~= '' and not ended and (count > 0 or redis.call('HEXISTS', S, 'j' .. call) == 1) then
  redis.call('HSET', S, field, stands, 'b', bytes, 'q' .. call, seen)
else
  redis.call('HSET', S, field, stands, 'b', bytes)
end
return reply(log, marks, till == '0' and 0 or 1, bytes)
