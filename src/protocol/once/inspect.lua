-- Looks at the last run without changing anything.
-- KEYS: lock queue tickets fence
-- ARGV:
-- Reply: holder ttl_ms run now
-- holder is the attempt id of the hold, empty if there is none. run is what is stored of the last run, or empty.

local lock, fence = KEYS[1], KEYS[4]
--@include clock
local holder = redis.call('HGETALL', lock)[1]
return {holder or '', redis.call('PTTL', lock), redis.call('GET', fence) or '', now}
