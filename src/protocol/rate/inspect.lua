-- Looks at a rate limiter without changing anything.
-- KEYS: tat
-- ARGV:
-- Reply: ahead_ns now

local key = KEYS[1]
--@include clock
--@include tat
return {ahead, now}
