-- Looks at a latch without changing anything.
-- KEYS: latch tickets
-- ARGV:
-- Reply: count ttl_ms waiters now
-- A latch that does not exist has count 0 and a negative ttl_ms. waiters counts live tickets only.

--@include clock
local count = redis.call('HGET', KEYS[1], 'count')
local waiters = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
return {tonumber(count or 0) or 0, count and redis.call('PTTL', KEYS[1]) or -2, waiters, now}
