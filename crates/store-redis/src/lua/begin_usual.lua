-- Nearly every begin: one call with a stream of its own, in a session whose idle time runs. It stands before all that the
-- other cases need, which begin.lua has, and goes on there when something is not as usual.
if ARGV[2] == '' and #ARGV == 7 then
  local epoch, delivery, most_bytes, call, entry, worker = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
  local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 'x', 'n', 'j' .. call, 'd' .. delivery)
  local n = known[6]
  -- What is over is looked for now and then only (begin.lua).
  if known[1] == epoch and not known[7] and not known[8] and known[5]
    and n % LOOKED_FOR_EVERY ~= 0 and tonumber(known[3]) < tonumber(most_bytes)
    and now() < known[5] + known[4] / RESTARTED_WITHIN
  then
    local stream = '0:0:0:1:0:' .. delivery
    if worker == '' then
      redis.call('HSET', S, 'n', int(n + 1), 'd' .. delivery, n, 's' .. n, stream, 'j' .. call, n .. ':' .. entry)
    else
      redis.call('HSET', S, 'n', int(n + 1), 'd' .. delivery, n, 's' .. n, stream, 'j' .. call, n .. ':' .. entry,
        'w' .. call, worker)
    end
    return { known[2], tonumber(n), 0, 0 }
  end
end
