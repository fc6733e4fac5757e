-- What Redisson's unlock does. The third key remembers that this very call was executed.
-- KEYS: lock channel done
-- ARGV: message lease_ms holder publish done_ms
local done = redis.call('GET', KEYS[3])
if done then return tonumber(done) end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
local left = redis.call('HINCRBY', KEYS[1], ARGV[3], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[3], 0, 'PX', ARGV[5])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], 1, 'PX', ARGV[5])
return 1
