-- Fragment: the queue of tickets.
-- Expects the locals: queue, tickets, now. Expects the fragment mutex or permits.
-- A ticket is `<client uuid>:<n>/<lease ms>/<amount>`: the attempt id, and what its grant will be. The amount is the
-- budget of tokens of a lock, or the number of permits; permits also have the limit of the call site. A script calls
-- open_queue() before the other functions.
-- What is handed out, the resource, gives the pattern of its tickets, and reap_expired(). It checks the types of its
-- keys and puts them in order; 1 if it must be called again for more, else 0. The fragment promote needs more of it.

-- How many tickets are queued, unless the script has set it before; and whether the caller must call again.
local waiting, call_again

-- The list and the sorted set have the same tickets. If one of them lost some (by an eviction, or an operator), the
-- order is lost. Both are deleted then, and the waiters queue up again when their next heartbeat is answered with
-- "gone".
local function forget_queue()
  redis.call('UNLINK', queue, tickets)
  waiting = 0
end

-- A script that stops half-way would leave a hold or a ticket that no client knows. Therefore keys of a wrong type are
-- found here, before the first write.
local function open_queue()
  waiting = waiting or redis.call('LLEN', queue)
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

local function live_waiters()
  return redis.call('ZCOUNT', tickets, '(' .. now, '+inf')
end
