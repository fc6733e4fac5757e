-- Steps: read the token of a hold of permits, or reply that there is no such hold.
-- Expects the locals: permits, leases, id, now. Expects the fragments absent and permit_renewed.
-- Sets the local: token, as text.

local token = renew(permits, leases, id, '0')
-- Raises which key has a wrong type.
if token == -1 then return {redis.call('HLEN', permits), redis.call('ZCARD', leases)} end
if token == 0 then
  takes_writes(permits)
  return {'NOT_HELD', now}
end
