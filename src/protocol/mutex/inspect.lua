-- Looks at a lock without changing anything.
-- KEYS: lock queue tickets fence
-- ARGV:
-- Reply: holder token ttl_ms waiters now
-- holder is the attempt id, empty if the lock is free. waiters counts live tickets only.

local lock, tickets = KEYS[1], KEYS[3]
--@include clock

local hold = redis.call('HGETALL', lock)
local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
return {hold[1] or '', string.match(hold[2] or '', '^%d*'), redis.call('PTTL', lock), waiters, now}
