-- Notes how a run has ended, and releases its hold, unless it is to last for longer.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id lease_ms period_ms outcome least_ms
-- Reply: RELEASED more now | NOT_HELD more now
-- outcome is `done` or `failed`. least_ms counts from when the run began. more is always 0.

local lock, fence = KEYS[1], KEYS[4]
local id, lease, period, least = ARGV[1], ARGV[2], ARGV[3] + 0, ARGV[5] + 0
--@include clock
--@include run

-- The first write takes no memory, because a full server refuses only that one.
redis.call('HDEL', lock, '')
local held = redis.call('HGET', lock, id)
if not held then return {'NOT_HELD', 0, now} end

-- What was known of the run may be gone. Its token is the time at which it began.
local token = string.match(held, '^%d*')
if by ~= id then began = string.format('%.0f', (token - token % 1000) / 1000) end
local said = token .. ' ' .. began .. ' ' .. now .. ' ' .. ARGV[4] .. ' '
--@include note_run
-- The clock may have been set back since.
local left = math.min(least, began + least - now)
if left > 0 then
  -- Under another name, which no late request and no clean-up of the run knows.
  redis.call('HSET', lock, id .. '/least', token)
  redis.call('PEXPIRE', lock, string.format('%.0f', left))
end
redis.call('HDEL', lock, id)
return {'RELEASED', 0, now}
