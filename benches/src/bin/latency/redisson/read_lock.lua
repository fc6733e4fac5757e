-- What Redisson's read lock does if nothing or a reader has the lock.
-- KEYS: lock timeout_prefix
-- ARGV: lease_ms holder
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':1', 1)
  redis.call('PEXPIRE', KEYS[2] .. ':1', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' then
  local timeout = KEYS[2] .. ':' .. redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('SET', timeout, 1)
  redis.call('PEXPIRE', timeout, ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[1]))
  return nil
end
return redis.call('PTTL', KEYS[1])
