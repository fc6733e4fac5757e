-- Votes for a proposed token, and takes the lock for the hold that proposes it: the part of one master in a RedLock.
-- KEYS: lock fence
-- ARGV: attempt_id lease_ms proposal owner granted not_after_ms
-- Reply: ACCEPTED proposal run_id uptime_s now | REFUSED counter run_id uptime_s now | BUSY ttl_ms run_id uptime_s now | STALE 0 run_id uptime_s now
-- REFUSED: the lock is taken, but the proposal is not larger than the counter. owner names the hold on all masters: it may propose
-- what it proposed before. granted 1: a majority has accepted the token already, and this master takes the lock for that hold whatever
-- its counter is. ttl_ms is what is left of the lease of the hold in the way, -1 if that has no end. not_after_ms 0 means no limit.
-- run_id and uptime_s are those of the server process.

local lock, fence = KEYS[1], KEYS[2]
local id, lease, proposal, owner, granted, not_after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
--@include clock
--@include counter
--@include process

local held = redis.call('HEXISTS', lock, id) == 1
if not held and redis.call('EXISTS', lock) == 1 then
  return {'BUSY', redis.call('PTTL', lock), run_id, uptime, now}
end
if not held and not_after > 0 and now > not_after then
  return {'STALE', 0, run_id, uptime, now}
end

local last, by = string.match(redis.call('GET', fence) or '', '^(%d+) (.*)$')
local highest = counter(last)
local accepted = highest < tonumber(proposal)
if highest == tonumber(proposal) and by == owner then accepted = true end
-- The counter orders grants. A lock that is taken again for a hold that lives is no grant, and leaves a larger counter as it is.
if accepted then
--@include counter_ttl
  redis.call('SET', fence, proposal .. ' ' .. owner, 'PX', counter_ttl)
end
accepted = accepted or granted == '1'

local token = accepted and proposal or '0'
--@include hold
if accepted then return {'ACCEPTED', proposal, run_id, uptime, now} end
return {'REFUSED', string.format('%.0f', highest), run_id, uptime, now}
