-- Issues every command that the scripts issue, and reads and writes each key, so that a missing right is an error now.
-- Leaves nothing. Commands that only votes or shard channels need are left out: most users do without them.
-- KEYS: key...
-- ARGV: channel [type]...
-- Reply: now
-- channel must have no subscriber. type is what the scripts store at the key: hash, list, string or zset. With an
-- empty channel, nothing is tried but the call itself.

local channel = ARGV[1]
--@include clock
if channel == '' then return {now} end

-- A full server refuses a command that needs memory only until the script has written. This one writes nothing.
for n, key in ipairs(KEYS) do
  if ARGV[n + 1] == 'zset' then redis.call('ZADD', key, 'XX', 0, '') end
end
local tried = {}
for n, key in ipairs(KEYS) do
  local stored = ARGV[n + 1]
  -- The right to remove comes first: without it, what the others write would be left behind.
  redis.call('UNLINK', key)
  -- The right to read: the key does not exist, so its type does not matter.
  redis.call('GET', key)
  -- A right to a command is one to all keys that the user may use.
  if not tried[stored] then
    tried[stored] = true
    redis.call('DEL', key)
    redis.call('PEXPIRE', key, 1000)
    redis.call('EXISTS', key)
    redis.call('PTTL', key)
    if stored == 'hash' then
      redis.call('HDEL', key, '')
      redis.call('HGET', key, '')
      redis.call('HMGET', key, '')
      redis.call('HGETALL', key)
      redis.call('HEXISTS', key, '')
      redis.call('HLEN', key)
      redis.call('HSET', key, '', '')
    elseif stored == 'list' then
      redis.call('LREM', key, 1, '')
      redis.call('LINDEX', key, 0)
      redis.call('LLEN', key)
      redis.call('RPUSH', key, '')
      redis.call('UNLINK', key)
      redis.call('LPUSH', key, '')
    elseif stored == 'string' then
      redis.call('STRLEN', key)
      redis.call('SET', key, '')
    else
      redis.call('ZREM', key, '')
      redis.call('ZSCORE', key, '')
      redis.call('ZRANGE', key, 0, 0)
      redis.call('ZRANGEBYSCORE', key, 0, 0)
      redis.call('ZCOUNT', key, 0, 0)
      redis.call('ZCARD', key)
    end
    redis.call('UNLINK', key)
  end
end
redis.call('PUBSUB', 'NUMSUB', channel)
redis.call('PUBLISH', channel, '')
return {now}
