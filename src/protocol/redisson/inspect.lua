-- Looks at a lock in Redisson's format without changing anything.
-- KEYS: lock
-- ARGV:
-- Reply: now owner entries ttl_ms
-- owner is empty if the lock is free. entries is how often the owner has entered, as it is stored.

local lock = KEYS[1]
--@include clock

local hold = redis.call('HGETALL', lock)
return {now, hold[1] or '', hold[2] or '', redis.call('PTTL', lock)}
