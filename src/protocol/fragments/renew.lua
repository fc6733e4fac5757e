-- Steps: renew the lease of a lock, if it is held.
-- Expects the locals: lock, id, lease, longest, extended. Expects the fragment absent.
-- Sets the local: held, a string, the token, if the attempt id holds the lock; the number 0 if not, -1 if the key has a
-- wrong type.

local held = redis.pcall('HGET', lock, id) or 0
if type(held) == 'table' then
  -- The second call raises what the first one returned.
  held = wrong_type(held) and -1 or redis.call('HGET', lock, id)
end
local stored = 0
-- Few holds have it stored. A search takes less time than a match.
if string.find(held, ' ', 1, true) then
  local token, asked = string.match(held, '^(%d+) (%d+)$')
  if token then held, stored = token, asked + 0 end
end
if type(held) == 'string' and lease ~= '0' then
--@include renewed
end
if type(held) == 'number' then takes_writes(lock) end
