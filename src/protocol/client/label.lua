-- Stores the label of a client, or removes it.
-- KEYS: labels leases
-- ARGV: client ttl_ms not_after_ms label
-- Reply: now
-- labels has the label of each client, leases the time at which its life ends. With ttl_ms = 0 the label is removed.
-- A request to store it that comes after not_after_ms, 0 for no limit, does nothing.

local labels, leases = KEYS[1], KEYS[2]
local client, ttl, not_after = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
--@include clock

-- Keys of a wrong type are found here, before the first write.
redis.call('HLEN', labels)
redis.call('ZCARD', leases)
if ttl == 0 then
  redis.call('ZREM', leases, client)
  redis.call('HDEL', labels, client)
  return {now}
end
if not_after > 0 and now > not_after then return {now} end
redis.call('HSET', labels, client, ARGV[4])
redis.call('ZADD', leases, now + ttl, client)
for _, key in ipairs(KEYS) do
  if redis.pcall('PEXPIRE', key, ttl) ~= 1 then
    -- A key must not last for ever. The second call raises what the first one returned.
    redis.call('HDEL', labels, client)
    redis.call('ZREM', leases, client)
    redis.call('PEXPIRE', key, ttl)
  end
end
-- Clients that came to an end without a word. Each call drops a few, and stays short. Last, because a
-- cluster that is moving a slot refuses to write to a key that a script has deleted.
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', '0', 'MAX_FORGOTTEN')) do
  redis.call('ZREM', leases, dead)
  redis.call('HDEL', labels, dead)
end
return {now}
