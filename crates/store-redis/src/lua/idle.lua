-- What the scripts that restart a session's idle time share; stands after streams.lua.

-- It is restarted when this part of it has passed, so that few steps have to.
local RESTARTED_WITHIN = 8

-- Restarts the idle time, of the session and its streams, when a part of it has passed, or when it is another one.
local function restart_idle(log, idle, before, restarted, time)
  if idle == tonumber(before) and time < tonumber(restarted or 0) + idle / RESTARTED_WITHIN then
    return
  end
  redis.call('PEXPIRE', S, int(idle))
  redis.call('HSET', S, 'i', int(idle), 'x', int(time))
  for _, field in ipairs(redis.call('HKEYS', S)) do
    local n = string.match(field, '^s(%d+)$')
    if n and parse_stream(redis.call('HGET', S, field)).till == 0 then
      redis.call('PEXPIRE', events_of(log, n), life_of_events(idle))
    end
  end
end
