-- Forgets what was taken of a rate limiter.
-- KEYS: tat
-- ARGV: not_after_ms
-- Reply: RESET existed now | STALE now

local not_after = ARGV[1]
--@include clock

if not_after ~= '0' and now > not_after + 0 then return {'STALE', now} end
return {'RESET', redis.call('DEL', KEYS[1]), now}
