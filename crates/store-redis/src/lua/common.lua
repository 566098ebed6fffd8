-- What every script of a session shares; stands before the script's own text.
--
-- KEYS[1] is the session's hash. Its fields:
--   e epoch            o owner, while one holds it     p principal         r record
--   i idle time, ms    l incarnation of the log        b bytes of events   n for older releases
--   a when it last came to another owner, ms; not there while it never has
--   x when the idle time was restarted, ms       m "at:sequence", a mark in the standalone stream
--   h, t               the line of finished streams: head and tail
--   s<n>               a stream: "last:trimmed:bytes:open calls:until:delivery"; until is 0 while it runs
--   c<n>               its ids: "place:nonce,..."; events after such a place have that nonce, those before the log's
--   d<delivery>        the stream that was opened for it
--   f<k>               a place in the line: "<n>:<until>"
--   j<call>            an open call: "<n>:<entry>"     q<call> its last event seen
--   w<call>, g<call>   the worker that it was bound to since it was begun, and the number of that one's ledger
-- The events of stream n are the list KEYS[1]:<l>:<n>: the first is the one after the last that was trimmed.
-- A Redis Stream would take 4 KB for the first event, and most streams have no second one.
--
-- A negative number is a refusal (src/reply.rs spells them).
--
-- What a script takes is its calls of Redis and as much again for the functions, tables and texts that it makes. So what nearly every
-- call needs stands here, the rest in streams.lua, and what can come as an argument does.
local S = KEYS[1]
local OK, STALE, MISSING, HELD, FULL, GONE, TRIMMED, RESTARTED, FORGOTTEN = 0, -1, -2, -3, -4, -5, -6, -7, -8
-- Events that nothing touches live longer than their session (and a second), so that their expiry need not be restarted with
-- every step.
local LIFE_OF_EVENTS = 1.25

-- A number as text. Lua would write large ones as 1e+15, and takes longer to write any.
local function int(number)
  return string.format('%d', number)
end

-- Refuses a writer that is not the owner; nil if it is. Epochs only grow, unless Redis has lost its newest writes: a
-- writer with a higher one has a claim that was forgotten, and says it again (restore_claim.lua).
local function refusal(known, epoch)
  if not known then
    return MISSING
  end
  if known == epoch then
    return nil
  end
  return tonumber(known) > tonumber(epoch) and STALE or FORGOTTEN
end
