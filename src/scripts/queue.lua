-- Fragment: the queue of tickets, and handing what is free to the first waiters that can be told.
-- Expects hold.lua or units.lua before it, and the locals inbox_prefix and counts_everyone.
-- A ticket is `<client uuid>:<n>/<lease ms>/<amount>`: the wire id, and what its grant will be. The amount is the span
-- of a lock's tokens or the number of permits. What it is taken from, the resource, is given by five functions:
-- settle() finds keys of a wrong type and puts the rest in order: 1 if the caller has to call again for more, else 0;
-- room(amount) whether so much is free, room() whether anything is; oversized(amount) whether it will never be;
-- hold(id, lease, amount) writes a hold and returns its token; undo(id, amount) takes a hold away.

-- A script that stops half-way leaves a hold or a ticket that nobody knows of. So a key of a wrong type is found
-- here, before anything is written.
local waiting, scored = redis.call('LLEN', queue), redis.call('ZCARD', tickets)
local again = settle()

-- List and zset hold the same tickets. If half of them was evicted or deleted, nobody can tell who waits: both
-- go, and the waiters enqueue again when their next touch says "gone".
local function forget_queue()
  redis.call('UNLINK', queue, tickets)
  waiting = 0
end

if waiting ~= scored then forget_queue() end

local function parse(ticket)
  local id, client, lease, amount = string.match(ticket, '^(([^:]+):%d+)/(%d+)/(%d+)$')
  return id, client, lease, tonumber(amount)
end

local function expiry(ticket)
  return tonumber(redis.call('ZSCORE', tickets, ticket))
end

-- `from` is '1' to search from the head, '-1' from the tail.
local function remove(ticket, from)
  local removed = redis.call('ZREM', tickets, ticket)
  if removed == 1 then waiting = waiting - redis.call('LREM', queue, from, ticket) end
  return removed == 1
end

local function refresh(ticket, ttl)
  redis.call('ZADD', tickets, 'XX', now + ttl, ticket)
end

-- Both live for an hour, and for 45 minutes at least: a ticket lives for half an hour at most.
local function keep_queue(is_new)
  if not is_new and redis.call('PTTL', tickets) > 2700000 then return end
  redis.call('PEXPIRE', queue, '3600000')
  redis.call('PEXPIRE', tickets, '3600000')
end

local function waits(ticket)
  return waiting > 0 and expiry(ticket)
end

-- The client that reads the reply, if there is one, and the messages for it that go there instead of to its inbox.
local listener, told = nil, {}

-- Whether the client could be told. A user who may not publish can tell nobody: waiters learn from their own touches.
local function tell(client, message)
  if client == listener then
    told[#told + 1] = message
    return true
  end
  return type(redis.pcall('PUBLISH', inbox_prefix .. client, message)) == 'number'
end

-- How many read the inbox of the client at this server. Who listens to a pattern of channels is not counted.
local function subscribers(client)
  return redis.call('PUBSUB', 'NUMSUB', inbox_prefix .. client)[2]
end

-- What is known of the clients in this call: whether each can be told, and how many cannot.
local audible, silent = {}, 0

local function is_silent(client)
  audible[client] = false
  silent = silent + 1
end

-- Asked before anything is written: a grant that is published and then undone is replicated all the same, and a client
-- that reads its inbox at a replica would believe it. Where one server does not know all subscribers, everybody is told.
-- A user who may not ask can tell nobody.
local function listens(client)
  if client == listener or not counts_everyone then return true end
  if audible[client] == nil then
    local asked, count = pcall(subscribers, client)
    if asked and count > 0 then audible[client] = true else is_silent(client) end
  end
  return audible[client]
end

-- Grants what the live ticket at the head asks for, and goes on to the next, while there is room. Nobody is passed but
-- tickets of clients that do not listen: theirs stay, and are granted when their client touches them. Tickets in the set
-- `own` belong to the caller, who reads the reply and needs no message.
-- Returns 1 if the caller has to call again, else 0; the tokens of the tickets in `own` that were granted; and why it
-- stopped: 'full' no room for the head, 'none' no live ticket is left that could take it, 'more' there is more to do
-- than one call may, 'bound' as many unreachable tickets as one call may look at stand before the rest.
local function promote(own)
  local taken = {}
  if not room() then return again, taken, 'full' end
  if waiting == 0 then return again, taken, 'none' end
  local index, dropped, granted = 0, 0, 0
  while room() do
    if index == 128 or silent == 16 then return again, taken, 'bound' end
    local ticket = redis.call('LINDEX', queue, index == 0 and '0' or index)
    if not ticket then return again, taken, 'none' end
    local id, client, lease, amount = parse(ticket)
    local expires = expiry(ticket)
    if not id or not expires or expires <= now then
      if dropped == 0 and redis.call('ZCOUNT', tickets, '(' .. now, '+inf') == 0 then
        forget_queue()
        return again, taken, 'none'
      end
      if dropped == 64 then return 1, taken, 'more' end
      redis.call('ZREM', tickets, ticket)
      waiting = waiting - redis.call('LREM', queue, '1', ticket)
      dropped = dropped + 1
    elseif oversized(amount) then
      if dropped == 64 then return 1, taken, 'more' end
      remove(ticket, '1')
      tell(client, 'gone ' .. id)
      dropped = dropped + 1
    elseif audible[client] == false and not own[ticket] then
      index = index + 1
    elseif not room(amount) then
      return again, taken, 'full'
    elseif granted == 128 then
      return 1, taken, 'more'
    elseif not (own[ticket] or listens(client)) then
      index = index + 1
    else
      local token = hold(id, lease, amount)
      if own[ticket] or tell(client, token .. ' ' .. lease .. ' ' .. id) then
        remove(ticket, '1')
        if own[ticket] then taken[ticket] = token end
        granted = granted + 1
      else
        -- Refused, so it was not executed, and nobody has heard of it.
        undo(id, amount)
        is_silent(client)
        index = index + 1
      end
    end
  end
  return again, taken, 'full'
end

-- How many wait: the dead do not.
local function living()
  return redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
end

-- Appends the ticket, or refreshes it where it `stands` already. Returns the number of waiters if that is too many, and
-- nothing is free that would let some of them go first.
local function enqueue(ticket, stands, ttl, max_waiters)
  if stands then
    refresh(ticket, ttl)
    keep_queue()
    return nil
  end
  if max_waiters > 0 and waiting >= max_waiters then
    -- A few of the dead are dropped per call, to keep the call short.
    for _, dead in ipairs(redis.call('ZRANGEBYSCORE', tickets, '-inf', now, 'LIMIT', 0, 16)) do
      remove(dead, '1')
    end
    local waiters = living()
    if waiters >= max_waiters and not room() then return waiters end
  end
  redis.call('RPUSH', queue, ticket)
  if type(redis.pcall('ZADD', tickets, now + ttl, ticket)) ~= 'number' then
    -- A user without that right must not leave a list for ever. The second call raises what the first one returned.
    redis.call('LREM', queue, '-1', ticket)
    redis.call('ZADD', tickets, now + ttl, ticket)
  end
  waiting = waiting + 1
  keep_queue(waiting == 1)
  return nil
end

-- After what is free was handed over: takes the ticket, which came last, out again if that leaves too many waiters.
-- Returns their number then.
local function overflow(ticket, max_waiters)
  if max_waiters == 0 or waiting <= max_waiters then return nil end
  local waiters = living() - 1
  if waiters < max_waiters then return nil end
  remove(ticket, '-1')
  return waiters
end
