-- Fragment: notifies the waiters of a latch.
-- Expects the locals: tickets, now, inbox_prefix
-- One call notifies a bounded number of waiters. While others are left, the word for them is stored among the tickets,
-- with a score at which no ticket is live. No latch of the name can be set until all of them are notified.
-- A message reports what has happened and grants nothing. So it stays true for a waiter that hears it through a
-- replica, and it does not matter whether anyone hears it: nothing is undone.

-- Returns the word for the waiters that still have to be notified, `open` or `gone`, or nil if there are none.
local function untold()
  return redis.call('ZRANGEBYSCORE', tickets, '0', '0')[1]
end

-- Notifies the next waiters, by one message per client: `<word> <attempt id>...`. A waiter that cannot be notified
-- learns the same from its next heartbeat. Returns 1 if more waiters have to be notified by the next call, else 0.
local function tell(word)
  local ids = redis.call('ZRANGEBYSCORE', tickets, '(' .. now, '+inf', 'LIMIT', 0, MAX_TOLD + 1)
  local more = #ids > MAX_TOLD
  if more then
    ids[#ids] = nil
    redis.call('ZADD', tickets, '0', word)
  end
  local clients, messages = {}, {}
  for _, id in ipairs(ids) do
    local client = string.match(id, '^([^:]+):')
    if client and not messages[client] then
      clients[#clients + 1] = client
      messages[client] = {word}
    end
    if client then table.insert(messages[client], id) end
  end
  for _, client in ipairs(clients) do
    local message = table.concat(messages[client], ' ')
    -- A prefix with a hash tag belongs to shard channels, which need another command.
    if string.find(inbox_prefix, '{', 1, true) then
      redis.pcall('SPUBLISH', inbox_prefix .. client, message)
    else
      redis.pcall('PUBLISH', inbox_prefix .. client, message)
    end
  end
  if more then
    redis.call('ZREM', tickets, unpack(ids))
    return 1
  end
  redis.call('UNLINK', tickets)
  return 0
end
