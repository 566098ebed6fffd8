-- What the scripts that touch streams share; stands after common.lua.

local function events_of(log, n)
  return S .. ':' .. log .. ':' .. n
end

-- The nonce in the id of the event at a place of a stream.
local function nonce_of(log, marks, place)
  local nonce = log
  for at, of in string.gmatch(marks or '', '(%d+):(%d+)') do
    if tonumber(at) < place then
      nonce = of
    end
  end
  return nonce
end

local function parse_stream(text)
  if not text then
    return { last = 0, trimmed = 0, bytes = 0, open = 0, till = 0, delivery = '' }
  end
  local last, trimmed, bytes, open, till, delivery =
    string.match(text, '^(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  return {
    last = tonumber(last), trimmed = tonumber(trimmed), bytes = tonumber(bytes),
    open = tonumber(open), till = tonumber(till), delivery = delivery,
  }
end

-- The line of what is forgotten in time, and the session's bytes, which change with it. `set` collects
-- what is written to the session's hash at the end of the step, in one command.
local function parse_line(head, tail, bytes)
  head, tail = tonumber(head or 0), tonumber(tail or 0)
  return { head = head, was_head = head, tail = tail, was_tail = tail, bytes = tonumber(bytes), set = {} }
end

local function set(line, field, value)
  local fields = line.set
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

-- Puts something at the end of the line.
local function queue(line, what, till)
  set(line, 'f' .. int(line.tail), what .. ':' .. int(till))
  line.tail = line.tail + 1
end

local function save(line)
  if line.head ~= line.was_head then
    set(line, 'h', int(line.head))
  end
  if line.tail ~= line.was_tail then
    set(line, 't', int(line.tail))
  end
  set(line, 'b', int(line.bytes))
  redis.call('HSET', S, unpack(line.set))
end

local function save_stream(line, n, stream)
  set(line, 's' .. n, string.format('%d:%d:%d:%d:%d:%s',
    stream.last, stream.trimmed, stream.bytes, stream.open, stream.till, stream.delivery))
end

local function forget_stream(line, log, n, stream)
  redis.call('HDEL', S, 's' .. n, 'c' .. n, 'd' .. stream.delivery)
  redis.call('UNLINK', events_of(log, n))
  line.bytes = line.bytes - stream.bytes
end

-- Forgets the first in line if its time is over at `time`, or whenever that is if `time` is nil; never
-- stream `keep`. Returns whether it did.
local function drop_first(line, log, time, keep)
  if line.head >= line.tail then
    return false
  end
  local place = 'f' .. int(line.head)
  local what, till = string.match(redis.call('HGET', S, place) or '', '^(%d+):(%d+)$')
  if what then
    if what == keep or (time and tonumber(till) > time) then
      return false
    end
    local text = redis.call('HGET', S, 's' .. what)
    if text then
      forget_stream(line, log, what, parse_stream(text))
    end
  end
  redis.call('HDEL', S, place)
  line.head = line.head + 1
  return true
end

-- A stream whose last call has ended is kept for `retention` ms.
local function finish(line, log, n, stream, retention, time)
  stream.till = time + retention
  redis.call('PEXPIRE', events_of(log, n), int(retention))
  queue(line, n, stream.till)
end

-- Removes the events of a stream up to a sequence.
local function trim(line, log, n, stream, up_to)
  if up_to <= stream.trimmed then
    return
  end
  local key, freed = events_of(log, n), 0
  local surplus = up_to - stream.trimmed
  for _, event in ipairs(redis.call('LRANGE', key, 0, surplus - 1)) do
    freed = freed + #event
  end
  redis.call('LTRIM', key, surplus, -1)
  stream.trimmed = up_to
  stream.bytes = stream.bytes - freed
  line.bytes = line.bytes - freed
end

-- Events of the standalone stream go when they are older than `retention` ms, and no older than twice that:
-- what stood before the last mark is dropped when the mark is old enough. Returns whether it was.
local function age_standalone(line, log, stream, mark, retention, time)
  local at, sequence = string.match(mark or '0:0', '^(%d+):(%d+)$')
  if time < tonumber(at) + retention then
    return false
  end
  trim(line, log, '0', stream, tonumber(sequence))
  set(line, 'm', int(time) .. ':' .. int(stream.last))
  return true
end

-- How long events live when nothing touches their session: longer than it does, so that their expiry
-- need not be restarted with every step (idle.lua).
local function life_of_events(idle)
  return int(math.ceil(idle * 1.25) + 1000)
end

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
