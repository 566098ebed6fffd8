-- Nearly every append: the answer of a stream's only call, and its first event. It stands before all that the other cases
-- need, which append.lua has, and goes on there when something is not as usual.
if #ARGV == 10 and ARGV[9] == '1' and ARGV[3] == '0' and ARGV[2] ~= '0' then
  local n, most_bytes, retention, call, event = ARGV[2], tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[10]
  local known = redis.call('HMGET', S, 'e', 'l', 'b', 't', 's' .. n, 'j' .. call, 'c' .. n)
  local log, tail, stream = known[2], known[4] or 0, known[5]
  if known[1] == ARGV[1] and known[6] and not known[7] and stream and string.sub(stream, 1, 10) == '0:0:0:1:0:' then
    local bytes = known[3] + #event
    if bytes <= most_bytes then
      local events, till = S .. ':' .. log .. ':' .. n, int(now() + retention)
      redis.call('RPUSH', events, event)
      redis.call('PEXPIRE', events, retention)
      redis.call('HDEL', S, 'j' .. call, 'w' .. call, 'q' .. call, 'g' .. call)
      redis.call('HSET', S, 't', int(tail + 1), 'f' .. tail, n .. ':' .. till, 'b', int(bytes),
        's' .. n, '1:0:' .. #event .. ':0:' .. till .. ':' .. string.sub(stream, 11))
      return { log, 1, 1, bytes }
    end
  end
end
