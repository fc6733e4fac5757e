-- Fragment: the queue of tickets, and handing what is free to the first waiters that can be told.
-- Expects hold.lua or units.lua before it, and the locals inbox_prefix and counts_everyone.
-- A ticket is `<client uuid>:<n>/<lease ms>/<amount>`: the attempt id, and what its grant will be. The amount is the span
-- of a lock's tokens or the number of permits, after which comes the limit of the call site that asks. What it is taken from,
-- the resource, is given by the pattern TICKET of its tickets and by five functions:
-- settle() finds keys of a wrong type and puts the rest in order: 1 if the caller has to call again for more, else 0;
-- room(amount, limit) whether so much is free by that limit, room() whether anybody might find room;
-- oversized(amount, limit) whether it will never be; hold(id, lease, amount) writes a hold and returns its token;
-- undo(id, amount) takes a hold away. To hand one over, ends(id, amount) comes before promote() and vacate() after it.

-- A script that stops half-way leaves a hold or a ticket that nobody knows of. So a key of a wrong type is found
-- here, before anything is written.
local waiting, scored = redis.call('LLEN', queue), redis.call('ZCARD', tickets)
local again = settle()

-- List and zset hold the same tickets. If half of them was evicted or deleted, nobody can tell who waits: both
-- go, and the waiters enqueue again when their next heartbeat says "gone".
local function forget_queue()
  redis.call('UNLINK', queue, tickets)
  waiting = 0
end

if waiting ~= scored then forget_queue() end

local function parse(ticket)
  local id, client, lease, amount, limit = string.match(ticket, ticket_pattern)
  return id, client, lease, tonumber(amount), tonumber(limit)
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
  if not is_new and redis.call('PTTL', tickets) > QUEUE_TTL_LEFT then return end
  redis.call('PEXPIRE', queue, QUEUE_TTL)
  redis.call('PEXPIRE', tickets, QUEUE_TTL)
end

local function waits(ticket)
  return waiting > 0 and expiry(ticket)
end

-- The client that reads the reply, if there is one, and the messages for it that go there instead of to its inbox.
local listener, told = nil, {}

-- Whether the client could be told. A user who may not publish can tell nobody: waiters learn from their own heartbeats.
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

-- Tells the first live waiter from that place on when the hold in its way ends, if it would not look in time by itself: it
-- looks after a third of its ticket's life, and when the hold ends that it knows of, which was another.
local function announce(index, lease, own)
  for at = index, math.min(index + ANNOUNCED_TICKETS - 1, waiting - 1) do
    local ticket = redis.call('LINDEX', queue, at)
    if not ticket then return end
    local id, client, its_lease = parse(ticket)
    local expires = expiry(ticket)
    if id and expires and expires > now then
      if not own[ticket] and 3 * lease < math.min(its_lease, MAX_TICKET_TTL) then
        tell(client, 'ends ' .. lease .. ' ' .. id)
      end
      return
    end
  end
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
  local index, dropped, granted, shortest = 0, 0, 0, nil
  while room() do
    if index == MAX_PASSED or silent == MAX_SILENT then return again, taken, 'bound' end
    local ticket = index < waiting and redis.call('LINDEX', queue, index == 0 and '0' or index)
    if not ticket then return again, taken, 'none' end
    local id, client, lease, amount, limit = parse(ticket)
    local expires = expiry(ticket)
    if not id or not expires or expires <= now then
      if dropped == 0 and redis.call('ZCOUNT', tickets, '(' .. now, '+inf') == 0 then
        forget_queue()
        return again, taken, 'none'
      end
      if dropped == MAX_DROPPED then return 1, taken, 'more' end
      redis.call('ZREM', tickets, ticket)
      waiting = waiting - redis.call('LREM', queue, '1', ticket)
      dropped = dropped + 1
    elseif oversized(amount, limit) then
      if dropped == MAX_DROPPED then return 1, taken, 'more' end
      remove(ticket, '1')
      tell(client, 'gone ' .. id)
      dropped = dropped + 1
    elseif audible[client] == false and not own[ticket] then
      index = index + 1
    elseif not room(amount, limit) then
      break
    elseif granted == MAX_GRANTED then
      return 1, taken, 'more'
    elseif not (own[ticket] or listens(client)) then
      index = index + 1
    else
      local token = hold(id, lease, amount)
      if own[ticket] or tell(client, token .. ' ' .. now .. ' ' .. id) then
        remove(ticket, '1')
        if own[ticket] then taken[ticket] = token end
        granted = granted + 1
        if not shortest or tonumber(lease) < tonumber(shortest) then shortest = lease end
      else
        -- Refused, so it was not executed, and nobody has heard of it.
        undo(id, amount)
        is_silent(client)
        index = index + 1
      end
    end
  end
  -- No ticket lives for more than half an hour.
  if shortest and tonumber(shortest) < ANNOUNCED_LEASE then announce(index, shortest, own) end
  return again, taken, 'full'
end

-- How many wait: the dead do not.
local function living()
  return redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
end

-- Drops dead tickets from the two ends of the list, where that costs nothing, a few per call. Those in between are not
-- counted as waiters, and are dropped when they come to an end.
local function trim()
  local dropped = 0
  local function drop_from(index, side)
    while dropped < MAX_TRIMMED and waiting > 0 do
      local ticket = redis.call('LINDEX', queue, index)
      local expires = ticket and expiry(ticket)
      if not expires or expires > now then return end
      remove(ticket, side)
      dropped = dropped + 1
    end
  end
  drop_from('0', '1')
  drop_from('-1', '-1')
end

-- The number of waiters, if there are so many that one who asks for that amount may not join them. What is free is handed
-- over first: that may make room in the queue, or the newcomer is next because none of the others can be told.
local function overcrowded(max_waiters, amount, own)
  if max_waiters == 0 or waiting < max_waiters then return nil end
  trim()
  if living() < max_waiters then return nil end
  local _, _, rest = promote({})
  local waiters = living()
  if waiters < max_waiters or rest == 'none' and room(amount, own) then return nil end
  return waiters
end

-- Appends the ticket, or refreshes it where it `stands` already.
local function enqueue(ticket, stands, ttl)
  if stands then
    refresh(ticket, ttl)
    keep_queue()
    return
  end
  redis.call('RPUSH', queue, ticket)
  if type(redis.pcall('ZADD', tickets, now + ttl, ticket)) ~= 'number' then
    -- A user without that right must not leave a list for ever. The second call raises what the first one returned.
    redis.call('LREM', queue, '-1', ticket)
    redis.call('ZADD', tickets, now + ttl, ticket)
  end
  waiting = waiting + 1
  keep_queue(waiting == 1)
end
