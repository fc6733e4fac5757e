-- Gives the hold of one attempt to another one, which may be of another client, with a new lease and a new token.
-- KEYS: lock queue tickets fence
-- ARGV: old_id new_id lease_ms not_after_ms
-- Reply: CHANGED token more now | NOT_HELD more now | STALE now
-- The replies are those of a change of permits. more is always 0. A second copy replies the token of the first one, and
-- starts the lease anew unless it lasts longer. not_after_ms 0 means no limit.

local lock, fence = KEYS[1], KEYS[4]
local old_id, id, lease, not_after = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
--@include clock
--@include counter
--@include token
--@include absent

local token = string.match(redis.call('HGET', lock, id) or '', '^%d+')
if token then
  -- This may be a late copy, and the lease may have been extended since.
  if redis.call('PTTL', lock) < lease + 0 then redis.call('PEXPIRE', lock, lease) else takes_writes(lock) end
  return {'CHANGED', token, 0, now}
end
local old = redis.call('HGET', lock, old_id)
if not old then
  takes_writes(lock)
  return {'NOT_HELD', 0, now}
end
-- A client that gave up cancels the new id. If that cancel comes first, this call must not come after it.
if not_after > 0 and now > not_after then return {'STALE', now} end
-- The counter may be lost, and the clock may stand before the old token, or the last that was reserved with it.
token = reserve(1, lease, string.format('%.0f', counter(string.match(old, '^%d*')) + LARGEST_BUDGET - 1))
--@include hold
-- The new hold is written before the old one is removed, as the script's first deletion may be its last write.
redis.call('HDEL', lock, old_id)
return {'CHANGED', token, 0, now}
