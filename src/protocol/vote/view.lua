-- Looks whether a master is free to vote, without changing anything.
-- KEYS: lock
-- ARGV:
-- Reply: FREE 0 run_id uptime_s saved_s micros | BUSY ttl_ms run_id uptime_s saved_s micros
-- ttl_ms is what is left of the lease of the hold in the way, -1 if that has no end. The last four are what the server
-- says of its process and its clock.

--@include clock
local known = '0'
--@include process

local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {'FREE', 0, run_id, uptime, saved, micros} end
return {'BUSY', left, run_id, uptime, saved, micros}
