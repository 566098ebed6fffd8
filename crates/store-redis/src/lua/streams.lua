-- What the scripts share that few calls need; stands after common.lua.

-- Milliseconds since 1970.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function events_of(log, n)
  return S .. ':' .. log .. ':' .. n
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

-- How long events live when nothing touches their session.
local function life_of_events(idle)
  return int(math.ceil(idle * LIFE_OF_EVENTS) + 1000)
end
