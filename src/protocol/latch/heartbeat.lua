-- Keeps the tickets of one client alive, and tells what became of each. If others are left to be told that the latch is
-- open or gone, the next of them are.
-- KEYS: latch tickets calls
-- ARGV: inbox_prefix [attempt_id ticket_ttl_ms]...
-- Reply: now more [WAITING | OPEN | GONE]...
-- OPEN: the latch has been counted down. GONE: it is not known whether it was. The latch expired, was deleted or
-- lost, or was set anew after it had been counted down and before this waiter heard of that. As with the latches of
-- java.util.concurrent, only a count of zero lets a waiter through; so GONE is an error for it and no success.
-- more is 1 if others are left still: then it is to be called again.

local latch, tickets = KEYS[1], KEYS[2]
local inbox_prefix = ARGV[1]
--@include clock
--@include outlive
--@include absent
--@include latch
--@include latch_messages
load_latch()

local left = untold()
local states, waiting = {}, false
for i = 2, #ARGV, 2 do
  local outcome, ticket = 'GONE', redis.call('ZSCORE', tickets, ARGV[i])
  if ticket and left then
    -- The latch that it waited for may be over since.
    outcome = left == 'open' and 'OPEN' or 'GONE'
  elseif count and count < 1 then
    outcome = 'OPEN'
  elseif ticket and count then
    redis.call('ZADD', tickets, 'XX', now + ARGV[i + 1], ARGV[i])
    outcome, waiting = 'WAITING', true
  end
  states[#states + 1] = outcome
end
if waiting then outlive(tickets, QUEUE_TTL) else takes_writes(latch) end
return {now, left and tell(left) or 0, unpack(states)}
