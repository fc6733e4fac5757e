-- Says how a run has ended, and releases its hold, unless it is to last for longer.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id outcome least_ms
-- Reply: RELEASED more now | NOT_HELD more now
-- outcome is `done` or `failed`. The hold lasts for least_ms from when the run began. more is always 0.

local lock, fence = KEYS[1], KEYS[4]
local id = ARGV[1]
--@include clock
--@include run

-- The first write takes no memory, because a full server refuses only that one.
redis.call('HDEL', lock, '')
local is_held = redis.call('HEXISTS', lock, id) == 1
local is_ours = by == id
if is_ours and outcome == 'running' then
  local ttl = redis.call('PTTL', fence)
  local ended = string.format('%.0f %s %d %s %s', last, began, now, ARGV[2], id)
  if ttl > 0 then redis.call('SET', fence, ended, 'PX', ttl) end
end
if not is_held then return {'NOT_HELD', 0, now} end
local left = is_ours and began + ARGV[3] - now or 0
if left > 0 then
  redis.call('PEXPIRE', lock, string.format('%.0f', left))
else
  redis.call('HDEL', lock, id)
end
return {'RELEASED', 0, now}
