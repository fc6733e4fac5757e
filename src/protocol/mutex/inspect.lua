-- Looks at a lock without changing anything.
-- KEYS: lock queue tickets fence
-- ARGV: listed
-- Reply: now holder token ttl_ms waiters [ticket]...
-- holder is the attempt id, empty if the lock is free. waiters counts live tickets only. The tickets are the live ones
-- among the first `listed` of the queue.

local lock, queue, tickets, listed = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
--@include clock

local hold = redis.call('HGETALL', lock)
local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
local reply = {now, hold[1] or '', string.match(hold[2] or '', '^%d*'), redis.call('PTTL', lock), waiters}
--@include listed
return reply
