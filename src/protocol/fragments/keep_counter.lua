-- Steps: let the counter that the last writer wrote live for as long after a grant to a reader as after its own.
-- Expects the locals: fence, lease. Sets the local: counter_ttl.

--@include counter_ttl
if redis.call('PTTL', fence) < counter_ttl + 0 then redis.call('PEXPIRE', fence, counter_ttl + COUNTER_SLACK) end
