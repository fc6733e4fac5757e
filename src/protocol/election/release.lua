-- Ends a term, hands over to the next candidate, and notifies the clients that wait for a change.
-- KEYS: lock queue tickets fence watchers changes
-- ARGV: attempt_id inbox_prefix counts_everyone
-- Reply: RELEASED more now | NOT_HELD more now
-- As lock_release without a ticket. more = 1: call again.

local KEYS, ARGV = KEYS, ARGV
local lock, queue, tickets, fence, watchers, changes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, inbox_prefix, counts_everyone = ARGV[1], ARGV[2], ARGV[3] == '1'
--@include clock
--@include absent
--@include mutex_hold
--@include mutex
--@include queue
--@include promote
--@include changes
load_changes()
--@include end_own
settle()
local more = promote({})
drop_ended()
tell_watchers()
return {'RELEASED', more, now}
