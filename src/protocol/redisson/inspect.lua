-- Looks at a lock in Redisson's format without changing anything.
-- KEYS: lock
-- ARGV:
-- Reply: now owner entries ttl_ms
-- owner is empty if the lock is free. entries is how often the owner has entered, as it is stored. A hash that is not
-- that of one owner is an error: it is that of a read-write lock, or of something else.

local lock = KEYS[1]
--@include clock

local hold = redis.call('HGETALL', lock)
if #hold > 2 or hold[1] and not string.find(hold[1], ':', 1, true) then
  return {err = 'WRONGTYPE the hash is not that of a lock of Redisson'}
end
return {now, hold[1] or '', hold[2] or '', redis.call('PTTL', lock)}
