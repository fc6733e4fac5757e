-- Notes what a leader says: that its term begins, what it publishes, or that it resigns; and tells who waits for that.
-- KEYS: lock watchers changes
-- ARGV: attempt_id what number label value inbox_prefix
-- Reply: NOTED more now | NOT_HELD more now
-- what is `led`, `said` or `ended`. number grows with each change of a term, so that a late copy changes nothing. more
-- is 1 if others are left to be told: latch_cancel, called again, tells them.

local lock, tickets, changes = KEYS[1], KEYS[2], KEYS[3]
local id, new_what, new_number, label, inbox_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]
--@include clock
--@include absent
--@include latch_messages
--@include changes
load_changes()

local held = string.match(redis.call('HGET', lock, id) or '', '^%d+')
if not held then
  takes_writes(lock)
  return {'NOT_HELD', 0, now}
end
local more = settle(held)
if term == held and number + 0 >= new_number + 0 then
  takes_writes(lock)
  return {'NOTED', more, now}
end
local client = string.match(id, '^[^:]*')
local began = term == held and since or now
more = add_change(new_what, held, new_number, began, client .. ' ' .. #label .. ' ' .. label .. ARGV[5])
return {'NOTED', more, now}
