-- Steps: read the token of readers, the last that the last writer has reserved.
-- Expects the local: fence. Sets the local: token, which the script declares; nil if there is no counter, or none that
-- a script wrote.

local last = redis.call('GET', fence)
if last and string.find(last, '^[1-9]%d*$') and last - COUNTER_LIMIT < 0 then token = last end
