-- Takes a lock in the format of Redisson's RFencedLock, if it is free, and reserves fencing tokens.
-- KEYS: lock counter
-- ARGV: attempt_id lease_ms budget not_after_ms probe how
-- Reply: GRANTED token now | BUSY ttl_ms more now | STALE now
-- The token is the first of the budget. The counter has the last one, and no TTL, because Redisson counts on from it.
-- Nobody else counts while the lock is held, so a second copy of the call finds its tokens there. All else is as in
-- redisson_acquire.

local KEYS, ARGV = KEYS, ARGV
local lock, counter = KEYS[1], KEYS[2]
local id, lease, budget, not_after, probe, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--@include clock
--@include absent
--@include redisson_hold

-- The first token of a budget whose last one this is.
local function first(last)
  return string.format('%.0f', last - budget + 1)
end

if held() then
  local last = tonumber(redis.call('GET', counter) or 0)
  -- A smaller number means that the counter was lost.
  if not last or last < budget + 0 then last = redis.call('INCRBY', counter, budget) end
  return {'GRANTED', first(last), now}
end
if is_late() then return {'STALE', now} end
local left = in_the_way()
if left then return {'BUSY', left, 0, now} end
-- Before the hold: a counter that is no number fails here, and leaves nothing.
local last = redis.call('INCRBY', counter, budget)
write_hold()
return {'GRANTED', first(last), now}
