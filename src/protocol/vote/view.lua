-- Looks whether a master is free to vote, without changing anything.
-- KEYS: lock
-- ARGV:
-- Reply: FREE 0 run_id uptime_s now | BUSY ttl_ms run_id uptime_s now
-- ttl_ms is what is left of the lease of the hold in the way, -1 if that has no end. run_id and uptime_s are those of
-- the server process.

--@include clock
--@include process

local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {'FREE', 0, run_id, uptime, now} end
return {'BUSY', left, run_id, uptime, now}
