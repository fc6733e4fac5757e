-- Fragment: notifies the waiters of a latch.
-- Expects the locals: tickets, now, inbox_prefix
-- One call notifies a bounded number of waiters. While others are left, the word for them is stored among the tickets,
-- with a score at which no ticket is live. No latch of the name can be set until all of them are notified.

--@include send

-- Returns the word for the waiters that still have to be notified, `open` or `gone`, or nil if there are none.
local function untold()
  return redis.call('ZRANGEBYSCORE', tickets, '0', '0')[1]
end

-- Notifies the next waiters. Returns 1 if more waiters have to be notified by the next call, else 0.
local function tell(word)
  local ids = redis.call('ZRANGEBYSCORE', tickets, '(' .. now, '+inf', 'LIMIT', 0, MAX_TOLD + 1)
  local more = #ids > MAX_TOLD
  if more then
    ids[#ids] = nil
    redis.call('ZADD', tickets, '0', word)
  end
  send(word, ids)
  if more then
    redis.call('ZREM', tickets, unpack(ids))
    return 1
  end
  redis.call('UNLINK', tickets)
  return 0
end
