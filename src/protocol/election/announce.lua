-- Adds the beginning of a term or a published value to the changes, and notifies the clients that wait for a change.
-- KEYS: lock watchers changes
-- ARGV: attempt_id term what number label value inbox_prefix
-- Reply: NOTED now | NOT_HELD now
-- what is `led` or `said`. number grows with each change of a term, so that a late copy changes nothing. The term is
-- compared, because a new master may have granted the same attempt id once more.

local lock, watchers, changes = KEYS[1], KEYS[2], KEYS[3]
local id, own, new_what, new_number, label, inbox_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[7]
--@include clock
--@include absent
--@include changes
load_changes()

if string.match(redis.call('HGET', lock, id) or '', '^%d+') ~= own then
  takes_writes(lock)
  return {'NOT_HELD', now}
end
settle(own)
if term == own and number + 0 >= new_number + 0 then
  takes_writes(lock)
else
  local client = string.match(id, '^[^:]*')
  add_change(new_what, own, new_number, client .. ' ' .. #label .. ' ' .. label .. ARGV[6])
end
tell_watchers()
return {'NOTED', now}
