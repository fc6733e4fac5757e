-- Waits no more.
-- KEYS: latch tickets
-- ARGV: wire_id
-- Reply: CANCELLED now | GONE now

--@include clock
return {redis.call('ZREM', KEYS[2], ARGV[1]) == 1 and 'CANCELLED' or 'GONE', now}
