-- Deletes a latch, whatever its count.
-- KEYS: latch tickets
-- ARGV: wire_id not_after_ms inbox_prefix
-- Reply: DELETED now | GONE now | STALE now
-- GONE: there was none. Clients that wait are told `gone <wire id> <wire id>...`. A second copy is DELETED, and deletes
-- nothing, not even a latch that was set since.

local id, not_after, inbox_prefix = ARGV[1], tonumber(ARGV[2]), ARGV[3]
--@include latch

if redis.call('HEXISTS', latch, id) == 1 then return {'DELETED', now} end
if late(not_after) then return {'STALE', now} end
if not count then
  remember(id, not_after)
  return {'GONE', now}
end

-- What is left of the hash remembers calls, as long as copies of them may come.
redis.call('HDEL', latch, 'count', 'ends')
count = nil
local last = math.max(forget(), not_after)
if not_after > 0 then redis.call('HSET', latch, id, not_after) end
wake(inbox_prefix, 'gone')
redis.call('PEXPIRE', latch, math.max(last - now + 1, 1))
return {'DELETED', now}
