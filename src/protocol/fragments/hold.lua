-- Steps: write the hold of a lock. The hash lock has one field: the attempt id of the hold, with its fencing token; for
-- a lease that was extended followed by the longest that was asked for.
-- Expects the locals: lock, id, token, lease.

redis.call('HSET', lock, id, token)
if redis.pcall('PEXPIRE', lock, lease) ~= 1 then
  -- A hold must not last for ever. The second call raises what the first one returned.
  redis.call('HDEL', lock, id)
  redis.call('PEXPIRE', lock, lease)
end
