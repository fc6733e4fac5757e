-- For operators: removes the tickets of a client, or of all, from a part of the queue.
-- KEYS: lock queue tickets fence
-- ARGV: client start not_after_ms inbox_prefix counts_everyone
-- Reply: DROPPED tickets next_start unseen more now | STALE now
-- client is empty for all. Looks at the tickets from the position `start` on. The clients are told
-- `dropped <attempt id> <attempt id>...`. unseen: how many tickets stand behind those that were looked at, from
-- next_start on. more = 1: call again (heartbeat).

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local whose, start, not_after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local inbox_prefix, counts_everyone = ARGV[4], ARGV[5] == '1'
--@include clock
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include promote
open_queue()

-- A copy that comes late must not drop those that have queued up since.
if not_after > 0 and now > not_after then return {'STALE', now} end

takes_writes(lock)
--@include drop_waiters
local more = promote({})
drop_ended()
return {'DROPPED', removed, next_start, unseen, more, now}
