-- Steps: renew a hold whose lease is the life of its key.
-- Expects the locals: lock, id, lease, longest, extended; held, what is stored without the longest lease that was asked
-- for; stored, that lease, 0 if there is none.

-- Not shorter than what any copy of any call asks for: this may be a late one. Since Redis 7.0, one command does that
-- in the usual case. Always written: a caller that waits for replicas waits for this.
if not redis.REDIS_VERSION_NUM or redis.call('PEXPIRE', lock, lease, 'GT') ~= 1 then
  local left = redis.call('PTTL', lock)
  if left > lease + 0 then
    local shortens = longest ~= '0' and left > longest + 0 and longest + 0 >= stored
    lease = shortens and longest or left
  end
  redis.call('PEXPIRE', lock, lease)
end
if extended == '1' and longest + 0 > stored then redis.call('HSET', lock, id, held .. ' ' .. longest) end
