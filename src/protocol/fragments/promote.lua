-- Fragment: how free capacity is granted to the first waiters that can be notified.
-- Expects the locals: clock, inbox_prefix, counts_everyone. Expects the fragments queue, and mutex or permits.
-- The resource gives these functions:
-- has_capacity(amount, limit) says whether so much is free by that limit; has_capacity() whether anything may be.
-- exceeds_limit(amount, limit) says whether that will never be. write_hold(id, lease, amount) grants and returns the
-- token. remove_hold(id, amount) takes a hold away. To hand one over, end_hold(id, amount) comes before promote(), and
-- drop_ended() after it.

-- The client that reads the reply, if there is one, and the messages that the reply has for it.
local listener, messages = nil, {}

-- For each client, whether this call knows that it can be notified; and the number of clients that cannot be.
local audible, silent = {}, 0

-- Grants what the first live ticket asks for, then the next, while there is capacity. Only tickets of clients that do
-- not listen are passed over: they stay, and are granted at their client's next heartbeat. Tickets in the set `own`
-- belong to the caller, which reads the reply and needs no message.
-- Returns 1 if the caller must call again, else 0; the tokens of the granted tickets in `own`; and why it stopped:
-- 'full' no capacity for the first ticket, 'none' no live ticket is left that can be granted, 'more' there is more to
-- do than one call may, 'bound' too many tickets that cannot be granted stand before the rest.
local function promote(own)
  local granted = {}
  if not has_capacity() then return call_again, granted, 'full' end
  if waiting == 0 then return call_again, granted, 'none' end

  -- A script that grants nothing, as most that queue up, does not make the functions for it.
--@include inbox

  local function is_silent(client)
    audible[client] = false
    silent = silent + 1
  end

  -- Asked before the first write. A grant that is published and then undone is replicated all the same, and a client
  -- that reads its inbox at a replica would believe it. If the server does not know all subscribers, every client is
  -- notified. If the user has no right to ask, no client is.
  local function listens(client)
    if client == listener or not counts_everyone then return true end
    if audible[client] == nil then
      local asked, count = pcall(subscribers, client)
      if asked and count > 0 then audible[client] = true else is_silent(client) end
    end
    return audible[client]
  end

  local index, dropped, grants, shortest = 0, 0, 0, nil
  while has_capacity() do
    if index == MAX_PASSED or silent == MAX_SILENT then return call_again, granted, 'bound' end
    local ticket = index < waiting and redis.call('LINDEX', queue, index == 0 and '0' or index)
    if not ticket then return call_again, granted, 'none' end
    local id, client, lease, amount, limit = parse(ticket)
    local expires = expiry(ticket)
    if not id or not expires or expires <= now then
      if dropped == 0 and live_waiters() == 0 then
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
      -- The milliseconds of the clock, which would take as long as a command to spell.
      if own[ticket] or tell(client, token .. ' ' .. string.sub(clock, 1, -4) .. ' ' .. id) then
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
  if not shortest or tonumber(shortest) >= ANNOUNCED_LEASE then return call_again, granted, 'full' end

  -- Notifies the first live waiter from here on when the new hold in its way ends. Not needed if the waiter asks
  -- before: it does so after a third of its ticket's life, and when the former hold would have ended.
  for at = index, math.min(index + ANNOUNCED_TICKETS - 1, waiting - 1) do
    local ticket = redis.call('LINDEX', queue, at)
    if not ticket then break end
    local id, client, its_lease = parse(ticket)
    local expires = expiry(ticket)
    if id and expires and expires > now then
      if not own[ticket] and 3 * shortest < math.min(its_lease, MAX_TICKET_TTL) then
        tell(client, 'ends ' .. shortest .. ' ' .. id)
      end
      break
    end
  end
  return call_again, granted, 'full'
end
