-- Deletes a latch, whatever its count.
-- KEYS: latch tickets calls
-- ARGV: attempt_id not_after_ms known_until_ms resent inbox_prefix
-- Reply: DELETED more now | GONE now | STALE now
-- GONE: there was none. Clients that wait are told `gone <attempt id> <attempt id>...`, unless they are being told that
-- it is open; more as in latch_count_down. A second copy is told the same again, and deletes nothing, not even a latch
-- that was set since.

local latch, tickets, calls = KEYS[1], KEYS[2], KEYS[3]
local id, not_after, known_until, resent, inbox_prefix =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5]
--@include clock
--@include outlive
--@include absent
--@include latch
--@include latch_messages
--@include latch_calls
load_latch()

local left = untold()
if is_known(id) then
  takes_writes(latch)
  return {'DELETED', left and 1 or 0, now}
end
if is_known('-' .. id) then
  takes_writes(latch)
  return {'GONE', now}
end
if is_late(not_after) then return {'STALE', now} end
if not count then
  unchanged('-' .. id)
  return {'GONE', now}
end

-- A server that is out of memory deletes too: it looks at the first write of a script, and this one needs none.
takes_writes(latch)
remember(id, function() redis.call('HDEL', latch, 'count', 'ends') end)
return {'DELETED', tell(left or 'gone'), now}
