-- Steps: let an attempt id wait for a message. Expects the locals: tickets, id, ttl, now. Expects the fragment outlive.

redis.call('ZADD', tickets, now + ttl, id)
local ok, why = pcall(outlive, tickets, QUEUE_TTL)
if not ok then
  -- Not a key for ever.
  redis.call('ZREM', tickets, id)
  error(why, 0)
end
-- A waiter without a heartbeat for an hour does not come back. Each call drops a few, and stays short.
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', tickets, '-inf', now - QUEUE_TTL, 'LIMIT', '0', 'MAX_FORGOTTEN')) do
  redis.call('ZREM', tickets, dead)
end
