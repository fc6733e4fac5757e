-- What Redisson's read lock does at the unlock. The last key remembers that this very call was executed.
-- KEYS: lock channel timeout_prefix key_prefix done
-- ARGV: message holder publish done_ms
local done = redis.call('GET', KEYS[5])
if done then return tonumber(done) end
if not redis.call('HGET', KEYS[1], 'mode') then return nil end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return nil end
local left = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
if left == 0 then redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('DEL', KEYS[3] .. ':' .. left + 1)
if redis.call('HLEN', KEYS[1]) > 1 then
  -- Others read: the lock lives as long as the longest of their leases.
  local longest = -3
  for _, holder in ipairs(redis.call('HKEYS', KEYS[1])) do
    local count = tonumber(redis.call('HGET', KEYS[1], holder))
    for i = count or 0, 1, -1 do
      longest = math.max(longest, redis.call('PTTL', KEYS[4] .. ':' .. holder .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', KEYS[1], longest)
    redis.call('SET', KEYS[5], 0, 'PX', ARGV[4])
    return 0
  end
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[3], KEYS[2], ARGV[1])
redis.call('SET', KEYS[5], 1, 'PX', ARGV[4])
return 1
