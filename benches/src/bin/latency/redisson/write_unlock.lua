-- What Redisson's write lock does at the unlock. The last key remembers that this very call was executed.
-- KEYS: lock channel done
-- ARGV: message holder publish done_ms
local done = redis.call('GET', KEYS[3])
if done then return tonumber(done) end
if redis.call('HGET', KEYS[1], 'mode') ~= 'write' then return nil end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then return 0 end
redis.call('HDEL', KEYS[1], ARGV[2])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[3], KEYS[2], ARGV[1])
end
redis.call('SET', KEYS[3], 1, 'PX', ARGV[4])
return 1
