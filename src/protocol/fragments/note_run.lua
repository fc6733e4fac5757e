-- Steps: store what is known of the last run.
-- Expects the locals: fence, id, lease, period (in ms, a number), said (all of it but the attempt id).

--@include fence_ttl
local ttl = math.max(fence_ttl + 0, 2 * period)
redis.call('SET', fence, said .. id, 'PX', string.format('%.0f', ttl))
