-- Looks at a lock without changing anything.
-- KEYS: lock queue tickets fence
-- ARGV:
-- Reply: holder token ttl_ms waiters now
-- holder is the attempt id, empty if the lock is free. waiters counts live tickets only.

--@include clock
local holder, token = '', ''
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'token' then holder = field end
end
if holder ~= '' then token = redis.call('HGET', KEYS[1], 'token') or '' end
return {holder, token, redis.call('PTTL', KEYS[1]), redis.call('ZCOUNT', KEYS[3], '(' .. now, '+inf'), now}
