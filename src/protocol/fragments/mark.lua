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

-- Executes a step of a change. If the user may not do that, the mark is what it was: before, or nothing.
local function step(execute, before)
  if pcall(execute) then return end
  if before then remember(before) else redis.call('PEXPIRE', mark, '0') end
  -- Raises the reason, with its code on servers before 7.0, too.
  execute()
end

-- Remembers the answer and makes the change, or does neither: the user may not have the rights. before is what the mark
-- was, if anything.
local function changed(answer, change, before)
  remember(answer)
  step(change, before)
end

-- The same, with a message. Nothing sees it before the change, because a script is one step. A message cannot be taken
-- back, so the right to the command of the change is tried before: try executes it, and changes nothing. A user who may
-- not write the counter may not call the script.
local function announced(answer, message, try, change, before)
  remember(answer)
  step(try, before)
  step(function()
    if type(publish(message)) ~= 'number' then
      -- Raises what the first call returned.
      if how == 'sharded' then redis.call('SPUBLISH', channel, message) else redis.call('PUBLISH', channel, message) end
    end
  end, before)
  step(change, before)
end
