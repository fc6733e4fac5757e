-- For operators: removes the tickets of a client, or of all, from a part of the queue.
-- KEYS: permits leases queue tickets fence
-- ARGV: client start not_after_ms limit inbox_prefix counts_everyone
-- Reply: DROPPED tickets next_start unseen more now | STALE now
-- As the script of the lock, with the limit of permits.

local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local whose, start, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local limit, inbox_prefix, counts_everyone = tonumber(ARGV[4]), ARGV[5], ARGV[6] == '1'
--@include clock
local fences = limit == ALL_UNITS
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
takes_writes(permits)
--@include load
--@include queue
--@include promote
open_queue()

if not_after > 0 and now > not_after then return {'STALE', now} end

--@include drop_waiters
local more = promote({})
drop_ended()
return {'DROPPED', removed, next_start, unseen, more, now}
