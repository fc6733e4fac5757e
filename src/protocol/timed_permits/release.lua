-- Ends the lease of a permit in the format of Redisson's RPermitExpirableSemaphore, and wakes those who wait.
-- KEYS: counter leases mark
-- ARGV: permit_id caller keep_ms channel how
-- Reply: RELEASED more now | NOT_HELD more now
-- A permit whose lease is over is given back, too, and the reply is NOT_HELD: Redisson does the same. With keep_ms, a
-- mark says for so long that the permit is over. It has caller if this call has ended the permit, so that a second copy
-- gets the same answer; and it keeps copies of the call that takes the permit from taking it again. keep_ms 0 leaves no
-- mark. more is always 0. how is that of the fragment publish.

local counter, leases, mark = KEYS[1], KEYS[2], KEYS[3]
local id, caller, keep, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--@include clock
--@include absent
--@include publish
--@include timed

local known = keep ~= '0' and redis.call('GET', mark)
if known then
  takes_writes(counter)
  return {known == caller and 'RELEASED' or 'NOT_HELD', 0, now}
end
local permit = permit_of(id)
local ends = redis.call('ZSCORE', leases, permit)
if ends then
  give_back({permit, ends})
else
  takes_writes(counter)
end
local said = ends and tonumber(ends) > now and 'RELEASED' or 'NOT_HELD'
if keep ~= '0' then redis.call('SET', mark, said == 'RELEASED' and caller or '', 'PX', keep) end
return {said, 0, now}
