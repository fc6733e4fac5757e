-- What Redisson's semaphore with leases (RPermitExpirableSemaphore) does for one permit. Its first key counts the free
-- permits. KEYS: permits ends channel
-- ARGV: permit ends_at_ms now_ms publish
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, 1)
if #over > 0 then
  redis.call('ZREM', KEYS[2], unpack(over))
  redis.call(ARGV[4], KEYS[3], redis.call('INCRBY', KEYS[1], #over))
end
local free = redis.call('GET', KEYS[1])
if free and tonumber(free) >= 1 then
  redis.call('DECRBY', KEYS[1], 1)
  redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
  return 'OK'
end
return nil
