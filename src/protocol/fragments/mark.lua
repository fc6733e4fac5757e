-- Fragment: the mark of a call that changes a counter of Redisson, so that no copy of the call changes it again.
-- Expects the locals: counter, mark, now, not_after, known_until, resent. Expects the fragments absent and publish.
-- mark is a key of this call alone. It has the answer, until no copy of the call may be executed any more. All copies
-- carry the same `known_until`, and none is executed later: the copy's own `not_after` is no later.
--
-- A call that changes nothing is marked only if it was sent before (`resent`), as in latch_calls.

-- Whether a copy arrives too late. 0 is no limit.
local function is_late()
  return not_after > 0 and now > not_after
end

-- The first write of a call, because it takes memory, which a server that is full refuses.
local function remember(answer)
  redis.call('SET', mark, answer, 'PX', string.format('%.0f', math.max(known_until - now + 1, 1)))
end

-- Called if the call changes nothing.
local function unchanged(answer)
  if resent then return remember(answer) end
  takes_writes(counter)
end

-- Remembers the answer, sends the message and makes the change; or, without the right to publish, does none of them.
-- Nothing sees the message before the change, because a script is one step. before is what the mark was, if anything.
local function changed(answer, message, change, before)
  remember(answer)
  if type(publish(message)) ~= 'number' then
    if before then remember(before) else redis.call('DEL', mark) end
    -- Raises what the first call returned.
    if how == 'sharded' then redis.call('SPUBLISH', channel, message) else redis.call('PUBLISH', channel, message) end
  end
  change()
end
