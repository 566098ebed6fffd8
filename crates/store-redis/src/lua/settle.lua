-- Settles a session's accounts before the step that follows: old events of the standalone stream go, then some of the finished
-- streams whose time is over, and others, the first in line first, while there is no room for what the step needs.
-- ARGV, of that step too: epoch.
do
  local known = redis.call('HMGET', S, 'e', 'l', 'b', 'h', 't', 's0', 'm')
  if known[1] == ARGV[1] then
    local events_of, bytes, room = S .. ':' .. known[2] .. ':', tonumber(known[3]), MOST_BYTES - MORE
    local head, tail = tonumber(known[4] or 0), tonumber(known[5] or 0)
    local time, changed, MOST_OVER, MOST_GONE = now(), {}, 32, 1000

    -- Events of the standalone stream go when they are older than the retention, and no older than twice that: what stood
    -- before the last mark goes when the mark is old enough.
    local at, sequence = string.match(known[7] or '0:0', '^(%d+):(%d+)$')
    if known[6] and time >= at + RETENTION then
      local last, trimmed, size, rest = string.match(known[6], '^(%d+):(%d+):(%d+)(:.*)$')
      if sequence - trimmed > 0 then
        for _, event in ipairs(redis.call('LPOP', events_of .. '0', sequence - trimmed) or {}) do
          size, bytes = size - #event, bytes - #event
        end
        changed = { 's0', last .. ':' .. sequence .. ':' .. size .. rest }
      end
      changed[#changed + 1] = 'm'
      changed[#changed + 1] = time .. ':' .. last
    end

    local most, gone = head + MOST_OVER, {}
    local function forget()
      if #gone > 0 then
        redis.call('HDEL', S, unpack(gone))
        gone = {}
      end
    end
    while head < tail do
      local short, place = bytes > room, 'f' .. head
      local n, till = string.match(redis.call('HGET', S, place) or '', '^(%d+):(%d+)$')
      if not short and (head >= most or (n and tonumber(till) > time)) then
        break
      end
      gone[#gone + 1] = place
      local stands = n and redis.call('HGET', S, 's' .. n)
      if stands then
        local size, delivery = string.match(stands, '^%d+:%d+:(%d+):%d+:%d+:(.*)$')
        bytes = bytes - size
        gone[#gone + 1] = 's' .. n
        gone[#gone + 1] = 'c' .. n
        gone[#gone + 1] = 'd' .. delivery
        -- The events of others have gone by themselves.
        if short then
          redis.call('UNLINK', events_of .. n)
        end
      end
      head = head + 1
      if #gone >= MOST_GONE then
        forget()
      end
    end
    forget()
    redis.call('HSET', S, 'h', head, 'b', bytes, unpack(changed))
  end
end
