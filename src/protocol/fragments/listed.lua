-- Steps: add the first tickets of a queue that have not expired to a reply.
-- Expects the locals: queue, tickets, now, listed (how many are looked at), reply.

for at = 0, listed - 1 do
  local ticket = redis.call('LINDEX', queue, at)
  if not ticket then break end
  if tonumber(redis.call('ZSCORE', tickets, ticket) or 0) > now then reply[#reply + 1] = ticket end
end
