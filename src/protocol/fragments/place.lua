-- Fragment: a ticket's place in the queue.
-- Expects the locals: queue, tickets, now. Expects the fragment queue.

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

-- Appends the ticket, or refreshes it if it is already queued. `top`: it goes before all others.
local function enqueue(ticket, queued, ttl, top)
  if queued then
    refresh(ticket, ttl)
    keep_queue()
    return
  end
  if top then redis.call('LPUSH', queue, ticket) else redis.call('RPUSH', queue, ticket) end
  if type(redis.pcall('ZADD', tickets, now + ttl, ticket)) ~= 'number' then
    -- A list without a TTL must not remain if the user lacks the right to set one. The second call raises the error
    -- that the first one returned.
    redis.call('LREM', queue, '-1', ticket)
    redis.call('ZADD', tickets, now + ttl, ticket)
  end
  waiting = waiting + 1
  keep_queue(waiting == 1)
end
