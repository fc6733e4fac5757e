-- Sets the count of a latch that does not exist or has been counted down.
-- KEYS: latch tickets calls
-- ARGV: attempt_id count ttl_ms not_after_ms known_until_ms resent inbox_prefix
-- Reply: SET now | EXISTS count now | MORE now | STALE now
-- EXISTS: the latch is being counted down, and stays as it is. A latch ends after ttl_ms, counted down or not. Waiters
-- keep waiting for the new latch, except those that still have to be told what became of the last one. MORE: some of
-- these are left, nothing is set yet, and the script is to be called again. A second copy gets the same reply and
-- changes nothing, not even a latch that was counted down since. resent is 1 if an earlier copy may have been executed.

local latch, tickets, calls = KEYS[1], KEYS[2], KEYS[3]
local id, new, ttl, not_after = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local known_until, resent, inbox_prefix = tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7]
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
  return {'SET', now}
end
if is_known('-' .. id) then
  takes_writes(latch)
  return {'EXISTS', count or 0, now}
end
if is_late(not_after) then return {'STALE', now} end
if count and count > 0 then
  unchanged('-' .. id)
  return {'EXISTS', count, now}
end
if left and tell(left) == 1 then return {'MORE', now} end

remember(id, function()
  redis.call('HSET', latch, 'count', new, 'ends', now + ttl)
  local ok, why = pcall(redis.call, 'PEXPIRE', latch, ttl)
  if ok then return end
  -- Not a latch for ever. What was there keeps its time to live.
  if stored_count and stored_ends then
    redis.call('HSET', latch, 'count', stored_count, 'ends', stored_ends)
  else
    redis.call('HDEL', latch, 'count', 'ends')
  end
  error(why, 0)
end)
return {'SET', now}
