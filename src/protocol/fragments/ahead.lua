-- Fragment: the next hand-off budget of a hold that goes on.
-- Expects the locals: now, not_after, lease, budget, ticket, ticket_ttl.
-- Expects the fragments counter, token, queue and place.

-- Replies GRANTED if no live ticket waits, after it has called store(token) with the first token of the budget. Else
-- the ticket queues up. `present` is the first token of the budget that the caller uses.
local function ahead(present, store)
  local queued = is_queued(ticket)
  if not queued then
    if not_after > 0 and now > not_after then
      return {'STALE', now}
    end
    if live_waiters() == 0 then
      -- The counter may be lost, and the clock may stand before the present budget, which is not larger than the next.
      local token = reserve(budget, lease, string.format('%.0f', counter(present) + budget - 1))
      store(token)
      return {'GRANTED', token, now}
    end
  end
  enqueue(ticket, queued, ticket_ttl)
  return {'QUEUED', now}
end
