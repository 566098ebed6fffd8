-- Nearly every begin: one call with a stream of its own, in a session whose idle time runs. It stands before all that the
-- other cases need, which begin.lua has, and goes on there when something is not as usual.
if ARGV[3] == '1' and #ARGV == 8 then
  local epoch, n, delivery, most_bytes, call, entry, worker =
    ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
  local known = redis.call('HMGET', S, 'e', 'l', 'b', 'i', 'x', 'n', 'j' .. call, 'd' .. delivery, 's' .. n)
  local begun = known[6]
  -- What is over is looked for now and then only (begin.lua).
  if known[1] == epoch and not known[7] and not known[8] and not known[9] and known[5]
    and begun % LOOKED_FOR_EVERY ~= 0 and tonumber(known[3]) < tonumber(most_bytes)
    and now() < known[5] + known[4] / RESTARTED_WITHIN
  then
    local stream = '0:0:0:1:0:' .. delivery
    if worker == '' then
      redis.call('HSET', S, 'n', int(begun + 1), 'd' .. delivery, n, 's' .. n, stream, 'j' .. call, n .. ':' .. entry)
    else
      redis.call('HSET', S, 'n', int(begun + 1), 'd' .. delivery, n, 's' .. n, stream, 'j' .. call, n .. ':' .. entry,
        'w' .. call, worker)
    end
    return { known[2], tonumber(n), 0, 0 }
  end
end
