-- Looks at a latch without changing anything.
-- KEYS: latch tickets calls
-- ARGV:
-- Reply: count ttl_ms waiters now
-- A latch that does not exist has count 0 and a negative ttl_ms. waiters counts live tickets only.

local latch, tickets = KEYS[1], KEYS[2]
--@include clock
--@include absent
--@include latch
load_latch()

local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
if not count or count < 1 then takes_writes(latch) end
return {count or 0, count and ends - now or -2, waiters, now}
