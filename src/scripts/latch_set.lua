-- Sets the count of a latch that does not exist or has been counted down.
-- KEYS: latch tickets
-- ARGV: wire_id count ttl_ms not_after_ms
-- Reply: SET now | EXISTS count now | STALE now
-- EXISTS: it is being counted down, and stays as it is. Whoever waits goes on waiting. The latch is gone after ttl_ms,
-- counted down or not. A second copy is told the same again, and changes nothing, not even a latch that was counted down
-- since.

local id, new, ttl, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
--@include latch

local known = redis.call('HGET', latch, id)
if known and string.sub(known, 1, 1) == '-' then return {'EXISTS', count or 0, now} end
if known then return {'SET', now} end
if late(not_after) then return {'STALE', now} end
if count and count > 0 then
  remember(id, not_after, '-')
  return {'EXISTS', count, now}
end

redis.call('HSET', latch, 'count', new, 'ends', now + ttl, id, not_after)
local ok, why = pcall(function()
  redis.call('PEXPIRE', latch, math.max(ttl, not_after - now + 1, redis.call('PTTL', latch)))
end)
if not ok then
  -- Not a latch for ever.
  redis.call('HDEL', latch, id, 'count', 'ends')
  if fields[1] and fields[2] then redis.call('HSET', latch, 'count', fields[1], 'ends', fields[2]) end
  error(why, 0)
end
redis.call('PEXPIRE', latch, math.max(ttl, forget() - now + 1))
return {'SET', now}
