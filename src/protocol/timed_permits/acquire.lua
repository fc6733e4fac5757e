-- Takes a permit of a semaphore in the format of Redisson's RPermitExpirableSemaphore, if one is free.
-- KEYS: counter leases mark
-- ARGV: permit_id lease_ms not_after_ms channel how probe
-- Reply: GRANTED token now | BUSY ttl_ms more now | STALE now
-- permit_id is 32 hexadecimal digits, and of one attempt only: a second copy of the call finds the permit, and its
-- lease begins anew, but is not shortened. After the end of the permit, timed_release leaves a mark, by which later
-- copies take nothing. The token is always 0: there is none. ttl_ms is the time until the lease of some permit ends, or
-- until the mark is gone; -1 if no permit is taken. more is 1 if there are more permits to give back whose leases are
-- over. not_after_ms 0 means no limit. probe is a channel to which the right to publish is tried, or empty. how is that
-- of the fragment publish.

local KEYS, ARGV = KEYS, ARGV
local counter, leases, mark = KEYS[1], KEYS[2], KEYS[3]
local id, lease, not_after, channel, how, probe = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--@include clock
--@include absent
--@include publish
--@include probe
--@include timed

if not_after ~= '0' and now > not_after + 0 then return {'STALE', now} end
local permit = permit_of(id)
local ends = redis.call('ZSCORE', leases, permit)
if ends then
  -- The id is stored until the permit is given back, so no other attempt has the permit, even if its lease is over. The
  -- end is always written, because a caller that waits for replicas waits for this write.
  redis.call('ZADD', leases, math.max(ends + 1, now + lease), permit)
  return {'GRANTED', '0', now}
end
local marked = redis.call('PTTL', mark)
if marked ~= -2 then
  takes_writes(counter)
  return {'BUSY', math.max(marked, 1), 0, now}
end
--@include stored
if wrong then return wrong end
local more = sweep()
count = tonumber(redis.call('GET', counter) or 0)
if count < 1 then
  takes_writes(counter)
  if more then return {'BUSY', 0, 1, now} end
  local first = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
  return {'BUSY', first and math.max(first - now, 0) or -1, 0, now}
end
-- The first write takes memory, which a server that is full refuses.
redis.call('ZADD', leases, now + lease, permit)
if type(redis.pcall('INCRBY', counter, '-1')) ~= 'number' then
  redis.call('ZREM', leases, permit)
  -- Raises what the first call returned.
  redis.call('INCRBY', counter, '-1')
end
-- A Java program may have given the counter a life by expire(). The permits must not outlive it. Redisson does the
-- same.
local life = redis.call('PTTL', counter)
if life > 0 then redis.call('PEXPIRE', leases, life) end
return {'GRANTED', '0', now}
