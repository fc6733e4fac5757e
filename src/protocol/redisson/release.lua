-- Releases a lock in Redisson's format, and wakes those who wait for it.
-- KEYS: lock
-- ARGV: owner channel sharded
-- Reply: RELEASED listeners now | NOT_HELD listeners now
-- sharded = 1: the channel is a shard channel. listeners is how many subscribers have got the message, as far as the
-- server counts them. Redisson reads the message as a number, and fails on anything else.

local lock, owner, channel, sharded = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
--@include clock

-- The deletion shows that the server takes writes, also if there is nothing to delete.
if redis.call('HDEL', lock, owner) == 0 then return {'NOT_HELD', 0, now} end
-- Without the right to publish, the lock is released all the same: those who wait find out when the lease has passed.
local listeners
if sharded == '1' then
  listeners = redis.pcall('SPUBLISH', channel, '0')
else
  listeners = redis.pcall('PUBLISH', channel, '0')
end
return {'RELEASED', type(listeners) == 'number' and listeners or 0, now}
