-- Releases a lock in Redisson's format, and wakes those who wait for it.
-- KEYS: lock
-- ARGV: owner channel how not_after_ms
-- Reply: RELEASED listeners now | NOT_HELD listeners now | STALE now
-- how is that of the fragment publish. listeners is how many subscribers have got the message, as far as the server
-- counts them. Redisson reads the message as a number, and fails on anything else. not_after_ms 0 means no limit.

local lock, owner, channel, how, not_after = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include clock
--@include publish

-- A thread of Java has the same name in each of its holds. A late copy must not end a later one.
if not_after ~= '0' and now > not_after + 0 then return {'STALE', now} end
-- The deletion shows that the server takes writes, also if there is nothing to delete.
if redis.call('HDEL', lock, owner) == 0 then return {'NOT_HELD', 0, now} end
-- Without the right to publish, the lock is released all the same: those who wait find out when the lease has passed.
local listeners = publish('0')
return {'RELEASED', type(listeners) == 'number' and listeners or 0, now}
