-- Looks at a latch without changing anything.
-- KEYS: latch tickets
-- ARGV:
-- Reply: count ttl_ms waiters now
-- A latch that does not exist has count 0 and a negative ttl_ms. waiters counts live tickets only.

--@include clock
local fields = redis.call('HMGET', KEYS[1], 'count', 'ends')
local left = fields[1] and (tonumber(fields[2]) or 0) - now or 0
local waiters = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
if left < 1 then return {0, -2, waiters, now} end
return {tonumber(fields[1]) or 0, left, waiters, now}
