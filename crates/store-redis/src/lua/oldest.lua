-- Where the events of a stream begin that are there.
-- ARGV: stream.
-- Returns {place, incarnation of the log, nonces of its ids}; MISSING, GONE.
local n = ARGV[1]
local known = redis.call('HMGET', S, 'e', 'l', 's' .. n, 'c' .. n)
if not known[1] then
  return MISSING
end
local log, stream = known[2], parse_stream(known[3])
if (not known[3] and n ~= '0') or (stream.till > 0 and stream.till <= now()) then
  return GONE
end
local place = stream.trimmed
if redis.call('LLEN', events_of(log, n)) ~= stream.last - stream.trimmed then
  -- Somebody else has removed some, and the others have moved up: none can be read.
  place = stream.last
end
return { place, log, known[4] or '' }
