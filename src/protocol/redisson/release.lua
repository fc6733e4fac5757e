-- Releases a lock in Redisson's format, and wakes those who wait for it.
-- KEYS: lock
-- ARGV: owner channel sharded
-- Reply: RELEASED more now | NOT_HELD more now
-- sharded = 1: the channel is a shard channel. more is always 0. Redisson reads the message as a number, and fails on
-- anything else.

local lock, owner, channel, sharded = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
--@include clock

-- The deletion shows that the server takes writes, also if there is nothing to delete.
if redis.call('HDEL', lock, owner) == 0 then return {'NOT_HELD', 0, now} end
-- Without the right to publish, the lock is released all the same: those who wait find out when the lease has passed.
if sharded == '1' then
  redis.pcall('SPUBLISH', channel, '0')
else
  redis.pcall('PUBLISH', channel, '0')
end
return {'RELEASED', 0, now}
