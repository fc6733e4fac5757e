-- Takes a lock in the format of Redisson's RLock, if it is free.
-- KEYS: lock
-- ARGV: attempt_id lease_ms not_after_ms probe how
-- Reply: GRANTED token now | BUSY ttl_ms more now | STALE now
-- The token is always 0: there is none. The hash has one field: the owner, with the number of its entries, which is
-- always 1 here, because a second copy of the call must not count. ttl_ms is what is left of the lease of the hold in
-- the way. more is always 0. not_after_ms 0 means no limit. probe is a channel to which the right to publish is tried,
-- or empty. how is that of redisson_release.

local KEYS, ARGV = KEYS, ARGV
local lock, id, lease, not_after, probe, how = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--@include clock
--@include absent
--@include redisson_hold

if held() then return {'GRANTED', '0', now} end
if is_late() then return {'STALE', now} end
local left = in_the_way()
if left then return {'BUSY', left, 0, now} end
write_hold()
return {'GRANTED', '0', now}
