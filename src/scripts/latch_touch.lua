-- Keeps the tickets of one client alive, and tells what became of each.
-- KEYS: latch tickets
-- ARGV: [wire_id ticket_ttl_ms]...
-- Reply: now [WAITING | OPEN | GONE]...
-- OPEN: the latch has been counted down. GONE: nobody knows whether it was. It ended by its time to live, was deleted
-- or lost, or was set anew after it had been counted down and before this waiter heard of that. As with the latches of
-- java.util.concurrent, only a count of zero lets a waiter through; so GONE is an error for it and no success.

--@include latch

local reply, waiting = {now}, false
for i = 1, #ARGV, 2 do
  local outcome = 'GONE'
  if count and count < 1 then
    outcome = 'OPEN'
  elseif count and redis.call('ZSCORE', tickets, ARGV[i]) then
    redis.call('ZADD', tickets, 'XX', now + ARGV[i + 1], ARGV[i])
    outcome, waiting = 'WAITING', true
  end
  reply[#reply + 1] = outcome
end
if waiting then outlive(tickets, 3600000) end
return reply
