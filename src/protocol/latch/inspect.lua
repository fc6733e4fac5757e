-- Looks at a latch without changing anything.
-- KEYS: latch tickets calls
-- ARGV: listed
-- Reply: now count ttl_ms waiters [attempt_id]...
-- A latch that does not exist has count 0 and a negative ttl_ms. waiters counts live tickets only; `listed` of them are
-- in the reply.

local latch, tickets = KEYS[1], KEYS[2]
--@include clock
--@include absent
--@include latch
load_latch()

local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
if not count or count < 1 then takes_writes(latch) end
local waiting = redis.call('ZRANGEBYSCORE', tickets, '(' .. now, '+inf', 'LIMIT', '0', ARGV[1])
return {now, count or 0, count and ends - now or -2, waiters, unpack(waiting)}
