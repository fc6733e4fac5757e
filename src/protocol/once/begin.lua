-- Begins the run of this period, if no run has begun in it and none holds.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id lease_ms period_ms first_ms retries not_after_ms
-- Reply: GRANTED token now | BUSY ttl_ms more now | STALE now
-- first_ms = 0: each multiple of period_ms begins a period. Otherwise the caller means the period that begins then, and
-- no run begins before or after it. retries = 1: a run of this period that has not ended well does not count. The token
-- is the time of the grant in microseconds, so its period is that of the run. more is always 0.

local lock, fence = KEYS[1], KEYS[4]
local id, lease, period, first, not_after = ARGV[1], ARGV[2], ARGV[3] + 0, ARGV[4] * 1000, ARGV[6]
--@include clock
--@include run
local held = redis.call('HGETALL', lock)

-- A resend. Its caller counts the lease from when this copy was sent, so it begins anew. Where there is nothing to
-- write, the deletion of what does not exist shows that this is no replica.
if held[1] == id then
  if redis.call('PTTL', lock) < lease + 0 then redis.call('PEXPIRE', lock, lease) else redis.call('HDEL', lock, '') end
  return {'GRANTED', string.match(held[2], '^%d*'), now}
end
if not_after ~= '0' and now > not_after + 0 then return {'STALE', now} end

-- If the clock was set back, the last token is the time.
local time = last and math.max(micros, last + 1) or micros
local begins = time - (time - first) % (period * 1000)
local is_another = first > 0 and begins ~= first
local counts = last and last >= begins and (outcome == 'done' or ARGV[5] ~= '1')
if held[1] or counts or is_another or by == id then
  redis.call('HDEL', lock, '')
  return {'BUSY', redis.call('PTTL', lock), 0, now}
end

-- The hold comes first: a period whose run has no hold would have no run.
local token = string.format('%.0f', time)
--@include hold
local said = token .. ' ' .. now .. ' 0 running '
--@include note_run
return {'GRANTED', token, now}
