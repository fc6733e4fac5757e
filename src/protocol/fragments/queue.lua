-- Fragment: the queue of tickets, and how free capacity is granted to the first waiters that can be notified.
-- Expects the locals: queue, tickets, now, inbox_prefix, counts_everyone. Expects the fragment mutex or permits.
-- A ticket is `<client uuid>:<n>/<lease ms>/<amount>`: the attempt id, and what its grant will be. The amount is the budget
-- of tokens of a lock, or the number of permits; permits also have the limit of the call site. A script calls open_queue()
-- before the other functions.
-- What is handed out, the resource, gives the pattern of its tickets and these functions:
-- reap_expired() checks the types of its keys and puts them in order; 1 if it must be called again for more, else 0.
-- has_capacity(amount, limit) says whether so much is free by that limit; has_capacity() whether anything may be.
-- exceeds_limit(amount, limit) says whether that will never be. write_hold(id, lease, amount) grants and returns the token.
-- remove_hold(id, amount) takes a hold away. To hand one over, end_hold(id, amount) comes before promote(), and
-- drop_ended() after it.

-- How many tickets are queued, and whether the caller must call again.
local waiting, call_again

-- The client that reads the reply, if there is one, and the messages that the reply has for it.
local listener, messages = nil, {}

-- For each client, whether this call knows that it can be notified; and the number of clients that cannot be.
local audible, silent = {}, 0

-- The list and the sorted set have the same tickets. If one of them lost some (by an eviction, or an operator), the order is
-- lost. Both are deleted then, and the waiters queue up again when their next heartbeat is answered with "gone".
local function forget_queue()
  redis.call('UNLINK', queue, tickets)
  waiting = 0
end

-- A script that stops half-way would leave a hold or a ticket that no client knows. Therefore keys of a wrong type are found
-- here, before the first write.
local function open_queue()
  waiting = redis.call('LLEN', queue)
  local scored = redis.call('ZCARD', tickets)
  call_again = reap_expired()
  if waiting ~= scored then forget_queue() end
end

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

-- The keys of the queue must outlive every ticket. They are refreshed early enough for that, and not at every change.
local function keep_queue(is_new)
  if not is_new and redis.call('PTTL', tickets) > QUEUE_TTL_LEFT then return end
  -- A queue without a TTL must not remain. The second call raises what the first one returned.
  if is_new and type(redis.pcall('PEXPIRE', queue, 'QUEUE_TTL')) ~= 'number' then forget_queue() end
  redis.call('PEXPIRE', queue, 'QUEUE_TTL')
  redis.call('PEXPIRE', tickets, 'QUEUE_TTL')
end

local function is_queued(ticket)
  return waiting > 0 and expiry(ticket)
end

-- A prefix with a hash tag belongs to shard channels, which need other commands.
local sharded = string.find(inbox_prefix, '{', 1, true)

-- Returns whether the message was sent. A user without the right to publish cannot send any. The waiters then learn the same
-- from their heartbeats.
local function tell(client, message)
  if client == listener then
    messages[#messages + 1] = message
    return true
  end
  if sharded then return type(redis.pcall('SPUBLISH', inbox_prefix .. client, message)) == 'number' end
  return type(redis.pcall('PUBLISH', inbox_prefix .. client, message)) == 'number'
end

-- The number of subscribers of the client's inbox at this server. Subscribers to a pattern of channels do not count.
local function subscribers(client)
  return redis.call('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', inbox_prefix .. client)[2]
end

local function is_silent(client)
  audible[client] = false
  silent = silent + 1
end

-- Asked before the first write. A grant that is published and then undone is replicated all the same, and a client that
-- reads its inbox at a replica would believe it. If the server does not know all subscribers, every client is notified. If
-- the user has no right to ask, no client is.
local function listens(client)
  if client == listener or not counts_everyone then return true end
  if audible[client] == nil then
    local asked, count = pcall(subscribers, client)
    if asked and count > 0 then audible[client] = true else is_silent(client) end
  end
  return audible[client]
end

-- Notifies the first live waiter from that place on when the new hold in its way ends. Not needed if the waiter asks before:
-- it does so after a third of its ticket's life, and when the former hold would have ended.
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

-- Grants what the first live ticket asks for, then the next, while there is capacity. Only tickets of clients that do not
-- listen are passed over: they stay, and are granted at their client's next heartbeat. Tickets in the set `own` belong to
-- the caller, which reads the reply and needs no message.
-- Returns 1 if the caller must call again, else 0; the tokens of the granted tickets in `own`; and why it stopped:
-- 'full' no capacity for the first ticket, 'none' no live ticket is left that can be granted, 'more' there is more to do
-- than one call may, 'bound' too many tickets that cannot be granted stand before the rest.
local function promote(own)
  local granted = {}
  if not has_capacity() then return call_again, granted, 'full' end
  if waiting == 0 then return call_again, granted, 'none' end
  local index, dropped, grants, shortest = 0, 0, 0, nil
  while has_capacity() do
    if index == MAX_PASSED or silent == MAX_SILENT then return call_again, granted, 'bound' end
    local ticket = index < waiting and redis.call('LINDEX', queue, index == 0 and '0' or index)
    if not ticket then return call_again, granted, 'none' end
    local id, client, lease, amount, limit = parse(ticket)
    local expires = expiry(ticket)
    if not id or not expires or expires <= now then
      if dropped == 0 and redis.call('ZCOUNT', tickets, '(' .. now, '+inf') == 0 then
        forget_queue()
        return call_again, granted, 'none'
      end
      if dropped == MAX_DROPPED then return 1, granted, 'more' end
      redis.call('ZREM', tickets, ticket)
      waiting = waiting - redis.call('LREM', queue, '1', ticket)
      dropped = dropped + 1
    elseif exceeds_limit(amount, limit) then
      if dropped == MAX_DROPPED then return 1, granted, 'more' end
      remove(ticket, '1')
      tell(client, 'gone ' .. id)
      dropped = dropped + 1
    elseif audible[client] == false and not own[ticket] then
      index = index + 1
    elseif not has_capacity(amount, limit) then
      break
    elseif grants == MAX_GRANTED then
      return 1, granted, 'more'
    elseif not (own[ticket] or listens(client)) then
      index = index + 1
    else
      local token = write_hold(id, lease, amount)
      if own[ticket] or tell(client, token .. ' ' .. now .. ' ' .. id) then
        remove(ticket, '1')
        if own[ticket] then granted[ticket] = token end
        grants = grants + 1
        if not shortest or tonumber(lease) < tonumber(shortest) then shortest = lease end
      else
        -- The server refused the message, so no client knows of the grant.
        remove_hold(id, amount)
        is_silent(client)
        index = index + 1
      end
    end
  end
  if shortest and tonumber(shortest) < ANNOUNCED_LEASE then announce(index, shortest, own) end
  return call_again, granted, 'full'
end

local function live_waiters()
  return redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
end

-- Removes expired tickets from both ends of the list, where that is cheap, a few per call. Those in between do not count as
-- waiters, and are removed when they reach an end.
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

-- Returns the number of waiters if a new one for this amount may not join them, else nil. Free capacity is handed out first.
-- This may make room in the queue, or the new one may be next because no other waiter can be notified.
local function too_many_waiters(max_waiters, amount, own)
  if max_waiters == 0 or waiting < max_waiters then return nil end
  trim()
  if live_waiters() < max_waiters then return nil end
  local _, _, rest = promote({})
  local waiters = live_waiters()
  if waiters < max_waiters or rest == 'none' and has_capacity(amount, own) then return nil end
  return waiters
end

-- Appends the ticket, or refreshes it if it is already queued.
local function enqueue(ticket, already_queued, ttl)
  if already_queued then
    refresh(ticket, ttl)
    keep_queue()
    return
  end
  redis.call('RPUSH', queue, ticket)
  if type(redis.pcall('ZADD', tickets, now + ttl, ticket)) ~= 'number' then
    -- A list without a TTL must not remain if the user lacks the right to set one. The second call raises the error that the
    -- first one returned.
    redis.call('LREM', queue, '-1', ticket)
    redis.call('ZADD', tickets, now + ttl, ticket)
  end
  waiting = waiting + 1
  keep_queue(waiting == 1)
end
