-- Looks at a barrier without changing anything.
-- KEYS: barrier tickets
-- ARGV: listed
-- Reply: now generation parties waiters [attempt_id]...
-- generation is the last one that has ended, and parties the number of those that wait or have waited last; 0 if it is
-- not known. waiters counts live tickets only; `listed` of them are in the reply.

local barrier, tickets = KEYS[1], KEYS[2]
--@include clock

local fields = redis.call('HMGET', barrier, 'parties', 'generation')
local waiters = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
local waiting = redis.call('ZRANGEBYSCORE', tickets, '(' .. now, '+inf', 'LIMIT', '0', ARGV[1])
return {now, tonumber(fields[2]) or 0, tonumber(fields[1]) or 0, waiters, unpack(waiting)}
