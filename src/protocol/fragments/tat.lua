-- Steps: read how far the theoretical arrival time (TAT) of a rate limiter lies ahead of the clock.
-- Expects the locals: key, and those of clock. Sets the local: ahead, in nanoseconds.

-- The key has the time at which it was written, in microseconds, and how far the TAT was ahead then, in nanoseconds. If
-- the clock was set back, no time has passed since: the TAT is never further ahead than when it was written. What no
-- script wrote counts as nothing.
local written, ahead = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
ahead = ahead and math.max(ahead - math.max(micros - written, 0) * 1000, 0) or 0
