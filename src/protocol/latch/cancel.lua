-- Waits no more. If others are left to be told that the latch is open or gone, the next of them are.
-- KEYS: latch tickets calls
-- ARGV: attempt_id inbox_prefix
-- Reply: CANCELLED more now | GONE more now
-- more is 1 if others are left still: then it is to be called again.

local tickets = KEYS[2]
local id, inbox_prefix = ARGV[1], ARGV[2]
--@include clock
--@include latch_messages

local word = redis.call('ZREM', tickets, id) == 1 and 'CANCELLED' or 'GONE'
local left = untold()
return {word, left and tell(left) or 0, now}
