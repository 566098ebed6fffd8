-- Removes a session with all its streams.
-- ARGV: epoch.
-- Returns OK, also when there is no such session (it was removed before), or STALE.
local known = redis.call('HMGET', S, 'e', 'l')
if not known[1] then
  return OK
end
-- A claim that was forgotten is good enough to end the session.
if refusal(known[1], ARGV[1]) == STALE then
  return STALE
end
for _, field in ipairs(redis.call('HKEYS', S)) do
  local n = string.match(field, '^s(%d+)$')
  if n then
    redis.call('UNLINK', events_of(known[2], n))
  end
end
redis.call('UNLINK', S)
return OK
