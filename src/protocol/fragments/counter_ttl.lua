-- Steps: how long the fencing counter lives after a grant with that lease. After that the clock alone makes tokens
-- grow, unless it was set back by as much.
-- Expects the local: lease. Sets the local: counter_ttl, in ms.

local counter_ttl = lease * 2 > COUNTER_TTL and lease * 2 or 'COUNTER_TTL'
