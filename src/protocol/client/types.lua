-- Tells the type of each key. TYPE would be one right more; these commands are called by other scripts, too.
-- KEYS: key...
-- ARGV:
-- Reply: [type]...
-- type is string, hash, list or zset; none if there is no key; other.

local types = {}
for n, key in ipairs(KEYS) do
  types[n] = 'none'
  if redis.call('EXISTS', key) == 1 then
    local string, hash = redis.pcall('STRLEN', key), redis.pcall('HLEN', key)
    local list, zset = redis.pcall('LLEN', key), redis.pcall('ZCARD', key)
    types[n] = type(string) == 'number' and 'string' or type(hash) == 'number' and 'hash'
      or type(list) == 'number' and 'list' or type(zset) == 'number' and 'zset' or 'other'
  end
end
return types
