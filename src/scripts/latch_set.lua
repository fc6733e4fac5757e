-- Sets the count of a latch that does not exist or has been counted down.
-- KEYS: latch tickets
-- ARGV: wire_id count ttl_ms not_after_ms
-- Reply: SET now | EXISTS count now | STALE now
-- EXISTS: it is being counted down, and stays as it is. Whoever waits goes on waiting. The latch is gone after ttl_ms,
-- counted down or not. A second copy is SET again, and changes nothing, not even a latch that was counted down since.

local id, new, ttl, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
--@include latch

if redis.call('HEXISTS', latch, id) == 1 then return {'SET', now} end
if late(not_after) then return {'STALE', now} end
if count and count > 0 then return {'EXISTS', count, now} end

redis.call('HSET', latch, 'count', new, id, not_after)
local ok, why = pcall(function() redis.call('PEXPIRE', latch, ttl) end)
if not ok then
  -- Not a latch for ever.
  redis.call('HDEL', latch, id, 'count')
  if count then redis.call('HSET', latch, 'count', count) end
  error(why, 0)
end
forget()
return {'SET', now}
