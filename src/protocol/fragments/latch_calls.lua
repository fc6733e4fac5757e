-- Fragment: the calls that have changed a latch, so that no copy of a call changes it again, nor the next latch of the
-- name. Expects the locals: latch, calls, now, not_after, known_until, resent. Expects the fragments outlive and
-- absent. The sorted set calls has the attempt ids, with `-` before those of refused sets and deletions, each with the
-- server's ms until which a copy of the call may come.
--
-- All copies of a call carry the same `known_until`, and none is executed later: the copy's own `not_after` is no
-- later. So what is remembered until then is known to every copy, whichever was executed first.
--
-- A call that changes something is remembered. A call that finds nothing to change is remembered only if it was sent
-- before (`resent`): else the memory would grow for as long as clients count down a latch that is open or missing. The
-- first copy needs no memory:
-- * Its client has the answer: it never sends another copy, and a connection delivers a copy once.
-- * The answer was lost: nothing was done, so the second copy begins anew. It is remembered, whatever it finds.
-- * The first copy comes after the second: it finds the second remembered. After `known_until` it is late.

local function is_known(member)
  return redis.call('ZSCORE', calls, member)
end

-- Makes the change and remembers the call, or does neither. Forgets a few calls of which no copy can arrive any more.
local function remember(member, change)
  if known_until < now then return change() end
  redis.call('ZADD', calls, known_until, member)
  local ok, why = pcall(function()
    outlive(calls, known_until - now + 1)
    change()
  end)
  if not ok then
    redis.call('ZREM', calls, member)
    error(why, 0)
  end
  local over = redis.call('ZRANGEBYSCORE', calls, '-inf', '(' .. now, 'LIMIT', '0', 'MAX_FORGOTTEN')
  if #over > 0 then redis.call('ZREM', calls, unpack(over)) end
end

-- Called if the call has nothing to change.
local function unchanged(member)
  if resent then return remember(member, function() end) end
  takes_writes(latch)
end
