-- Steps: ask the client of a retained hold to release the lock when it does not use it. A user that may not publish
-- waits for as long as that client keeps the lock. Expects the locals: holder (the attempt id of the hold in the way,
-- or nil), inbox_prefix.

if holder and string.sub(holder, -1) == 'r' then
  -- To the inbox without a slot: a holder that has not waited reads no other.
  local inbox = string.match(inbox_prefix, '^[^{]*') .. string.match(holder, '^[^:]*')
  redis.pcall('PUBLISH', inbox, 'wanted ' .. holder)
end
