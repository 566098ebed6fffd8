-- Reads a piece of a stream.
-- ARGV: incarnation, stream, sequence read so far, most events.
-- Returns {finished and reached, incarnation of the log, nonces of its ids, event...}; MISSING, RESTARTED, GONE, TRIMMED.

-- The nonce in the id of the event at a place of a stream.
local function nonce_of(log, marks, place)
  local nonce = log
  for at, of in string.gmatch(marks, '(%d+):(%d+)') do
    if tonumber(at) < place then
      nonce = of
    end
  end
  return nonce
end

local nonce, n, after, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local known = redis.call('HMGET', S, 'e', 'l', 's' .. n, 'c' .. n)
if not known[1] then
  return MISSING
end
local log, marks = known[2], known[4] or ''
-- It names the event at that place, or one that was there before Redis lost it.
if nonce_of(log, marks, after) ~= nonce then
  return RESTARTED
end
if not known[3] and n ~= '0' then
  return GONE
end
local stream = parse_stream(known[3])
if after > stream.last or (stream.till > 0 and stream.till <= now()) then
  return GONE
end
if after < stream.trimmed then
  return TRIMMED
end
local page, found = { 0, log, marks }, {}
if after < stream.last and limit > 0 then
  local key, first = events_of(log, n), after - stream.trimmed
  -- Not as many as there must be: somebody else has removed some, and the others have moved up.
  if redis.call('LLEN', key) ~= stream.last - stream.trimmed then
    return GONE
  end
  found = redis.call('LRANGE', key, first, first + limit - 1)
end
for _, event in ipairs(found) do
  page[#page + 1] = event
end
if stream.till > 0 and after + #found == stream.last then
  page[1] = 1
end
return page
