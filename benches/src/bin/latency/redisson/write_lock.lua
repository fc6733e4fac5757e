-- What Redisson's write lock does to a free lock.
-- KEYS: lock
-- ARGV: lease_ms holder
if not redis.call('HGET', KEYS[1], 'mode') then
  redis.call('HSET', KEYS[1], 'mode', 'write')
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])
