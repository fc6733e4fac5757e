-- Fragment: the queue of tickets, and handing a free lock to the first waiter that can be told.
-- Expects hold.lua before it, and the locals inbox_prefix and counts_everyone.
-- A ticket is `<client uuid>:<n>/<lease ms>/<span>`: the wire id, and what its grant will be.

-- A script that stops half-way leaves a hold or a ticket that nobody knows of. So a key of a wrong type is found
-- here, before anything is written.
redis.call('HLEN', lock)
redis.call('LLEN', queue)
redis.call('ZCARD', tickets)
redis.call('STRLEN', fence)

local function parse(ticket)
  local id, client, lease, span = string.match(ticket, '^(([^:]+):%d+)/(%d+)/(%d+)$')
  return id, client, tonumber(lease), tonumber(span)
end

local function expiry(ticket)
  return tonumber(redis.call('ZSCORE', tickets, ticket))
end

-- List and zset hold the same tickets. If half of them was evicted or deleted, nobody can tell who waits: both
-- go, and the waiters enqueue again when their next touch says "gone".
local function length()
  local n = redis.call('LLEN', queue)
  if n ~= redis.call('ZCARD', tickets) then
    redis.call('UNLINK', queue, tickets)
    return 0
  end
  return n
end

-- `from` is 1 to search from the head, -1 from the tail.
local function remove(ticket, from)
  local removed = redis.call('ZREM', tickets, ticket)
  if removed == 1 then redis.call('LREM', queue, from, ticket) end
  return removed == 1
end

local function refresh(ticket, ttl)
  redis.call('ZADD', tickets, 'XX', now + ttl, ticket)
end

local function keep_queue()
  redis.call('PEXPIRE', queue, 3600000)
  redis.call('PEXPIRE', tickets, 3600000)
end

-- Appends the ticket, or refreshes it where it stands. Returns whether there was room, and the number of waiters.
local function enqueue(ticket, ttl, max_waiters)
  local n = length()
  if n > 0 and expiry(ticket) then
    refresh(ticket, ttl)
    keep_queue()
    return true, n
  end
  if max_waiters > 0 and n >= max_waiters then
    -- The dead do not count as waiters. A few are dropped per call, to keep the call short.
    for _, dead in ipairs(redis.call('ZRANGEBYSCORE', tickets, '-inf', now, 'LIMIT', 0, 16)) do
      remove(dead, 1)
      n = n - 1
    end
    local living = redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
    if living >= max_waiters then return false, living end
  end
  redis.call('RPUSH', queue, ticket)
  if type(redis.pcall('ZADD', tickets, now + ttl, ticket)) ~= 'number' then
    -- A user without that right must not leave a list for ever. The second call raises what the first one returned.
    redis.call('LREM', queue, -1, ticket)
    redis.call('ZADD', tickets, now + ttl, ticket)
  end
  keep_queue()
  return true, n + 1
end

-- Gives the free lock to the first live ticket whose client listens; tickets in the set `own` belong to the
-- caller, who reads the reply and needs no message. Returns that ticket and its token, or nil, nil and why:
-- 'none' no live ticket could take it, 'more' expired tickets are left to drop and the caller has to call again,
-- 'bound' as many unreachable tickets as one call may look at stand before the rest.
local function promote(own)
  if length() == 0 then return nil, nil, 'none' end
  local index, dropped = 0, 0
  local silent, clients = {}, 0
  while index < 128 and clients < 16 do
    local ticket = redis.call('LINDEX', queue, index)
    if not ticket then return nil, nil, 'none' end
    local id, client, lease, span = parse(ticket)
    local expires = expiry(ticket)
    if not id or not expires or expires <= now then
      if dropped == 0 and redis.call('ZCOUNT', tickets, '(' .. now, '+inf') == 0 then
        redis.call('UNLINK', queue, tickets)
        return nil, nil, 'none'
      end
      if dropped == 64 then return nil, nil, 'more' end
      redis.call('ZREM', tickets, ticket)
      redis.call('LREM', queue, 1, ticket)
      dropped = dropped + 1
    elseif own[ticket] then
      local token = hold(id, lease, span)
      remove(ticket, 1)
      return ticket, token
    elseif silent[client] then
      index = index + 1
    else
      local token = hold(id, lease, span)
      -- A user who may not publish can tell nobody either: waiters learn from their own touches then.
      local heard = redis.pcall('PUBLISH', inbox_prefix .. client, token .. ' ' .. lease .. ' ' .. id)
      if type(heard) == 'number' and (heard > 0 or not counts_everyone) then
        remove(ticket, 1)
        return ticket, token
      end
      redis.call('DEL', lock)
      silent[client] = true
      clients = clients + 1
      index = index + 1
    end
  end
  return nil, nil, 'bound'
end

-- Promotes if the lock is free. Returns 1 if the caller has to call again, else 0, and what promote returned.
local function promote_if_free(own)
  if redis.call('EXISTS', lock) == 1 then return 0 end
  local ticket, token, rest = promote(own)
  return rest == 'more' and 1 or 0, ticket, token, rest
end
