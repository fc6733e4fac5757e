-- Steps: load the permits, see the fragment permits. A sole hold is stored in full first.
-- Expects the fragment permits.

if redis.call('EXISTS', leases) == 0 then
--@include sole
end
load_permits()
