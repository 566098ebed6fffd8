-- Makes a node the owner, and restarts the idle time, if nothing has changed since the claimer looked, who has seen that nobody
-- holds the session, or has evidence that its owner is gone: the lease that decides that lies in another slot of a cluster.
-- ARGV: node, owner seen ('' for none), epoch seen, some chance (at least 1), how long the session must have been its
-- owner's, ms (0: no matter).
-- Returns {epoch, record}; MISSING; HELD when another claim was quicker, or so is this one.
--
-- An epoch is the time of its claim, in microseconds, and a bit of chance: a Redis that lost its last writes in a
-- failover must not give one out twice, whatever its clock, for then two owners would pass the fence.

-- The nonces of a stream's ids, with one more for what comes after where it stands; without those of events that were
-- trimmed, or were never there.
local function mark(marks, stream, nonce)
  local kept, before = {}, nil
  for at, of in string.gmatch(marks or '', '(%d+):(%d+)') do
    if tonumber(at) < stream.trimmed then
      before = at .. ':' .. of
    elseif tonumber(at) < stream.last then
      kept[#kept + 1] = at .. ':' .. of
    end
  end
  if before then
    table.insert(kept, 1, before)
  end
  kept[#kept + 1] = string.format('%d:%d', stream.last, nonce)
  return table.concat(kept, ',')
end

local node, owner, epoch, chance, quiet = unpack(ARGV)
local known = redis.call('HMGET', S, 'e', 'o', 'r', 'i', 'a')
if not known[1] then
  return MISSING
end
if known[1] ~= epoch or (known[2] or '') ~= owner then
  return HELD
end
local time = redis.call('TIME')
local at = now()
if tonumber(quiet) > 0 and at < tonumber(known[5] or 0) + quiet then
  return HELD
end
local new = math.max(known[1], time[1] * 1000000 + time[2]) + chance
local changed = { 'e', int(new), 'o', node }
if owner ~= node then
  changed[#changed + 1] = 'a'
  changed[#changed + 1] = int(at)
end
-- Streams that go on get ids with a nonce of this claim: what the owner before has numbered may be lost, and such an id
-- must not come again for something else. Later places than where a stream stands were lost with their events.
local streams = { '0' }
for _, field in ipairs(redis.call('HKEYS', S)) do
  streams[#streams + 1] = string.match(field, '^s([1-9]%d*)$')
end
for _, n in ipairs(streams) do
  local stands = redis.call('HMGET', S, 's' .. n, 'c' .. n)
  local stream = parse_stream(stands[1])
  if stream.till == 0 then
    changed[#changed + 1] = 'c' .. n
    changed[#changed + 1] = mark(stands[2], stream, new % 4294967296)
  end
end
redis.call('HSET', S, unpack(changed))
-- The events live longer, and are touched with the owner's next record.
redis.call('PEXPIRE', S, known[4])
return { int(new), known[3] }
