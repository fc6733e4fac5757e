-- Fragment: a count-down latch.
-- Expects the locals: latch, now
-- The hash latch has `count`, and `ends`, the server's ms when there is no latch any more. The sorted set tickets has
-- the attempt ids that wait, with their expiry. A script calls load_latch() before it looks at the count.

-- The count, or nil if there is no latch; the end of the latch; and both as they are stored.
local count, ends, stored_count, stored_ends

local function load_latch()
  local fields = redis.call('HMGET', latch, 'count', 'ends')
  stored_count, stored_ends = fields[1], fields[2]
  ends = tonumber(stored_ends) or 0
  -- A count that is not a number was not written by a script. No waiter has to wait for it.
  count = stored_count and ends > now and (tonumber(stored_count) or 0) or nil
end

-- Whether a copy with that limit arrives too late. 0 is no limit.
local function is_late(not_after)
  return not_after > 0 and now > not_after
end
