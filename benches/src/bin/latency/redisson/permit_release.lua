-- What Redisson's semaphore with leases does when a permit is given back.
-- KEYS: permits channel ends
-- ARGV: permit now_ms publish
local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
if redis.call('ZREM', KEYS[3], ARGV[1]) ~= 1 then return 0 end
redis.call(ARGV[3], KEYS[2], redis.call('INCRBY', KEYS[1], 1))
return tonumber(ends) > tonumber(ARGV[2]) and 1 or 0
