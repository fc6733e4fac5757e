-- Steps: how long the fencing counter lives after a grant with that lease. After that the clock alone makes tokens
-- grow, unless it was set back by as much.
-- Expects the local: lease. Sets the local: fence_ttl, in ms, as text. Redis 7.2.0 to 7.2.4 spell the number 10^8 as
-- `1e+8`, and refuse that for an integer.

local fence_ttl = lease * 2 > COUNTER_TTL and lease * 2 .. '' or 'COUNTER_TTL'
