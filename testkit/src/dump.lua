-- Key, type, expiry (server ms, -1 is never) and content of every key.
local rows = {}
for i, key in ipairs(redis.call('KEYS', '*')) do
  local time, ttl, kind, items = redis.call('TIME'), redis.call('PTTL', key), redis.call('TYPE', key).ok, {}
  if kind == 'string' then items = {redis.call('GET', key)}
  elseif kind == 'list' then items = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'hash' then items = redis.call('HGETALL', key)
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else items = {'?'} end
  if ttl >= 0 then ttl = ttl + time[1] * 1000 + math.floor(time[2] / 1000) end
  rows[i] = {key, kind, ttl, items}
end
return rows
