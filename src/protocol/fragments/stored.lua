-- Steps: read what is stored of a counter of Redisson.
-- Expects the local: counter
-- Sets the locals: count, the number, or nil if there is none; wrong, an error if the string is no number, or has more
-- digits than Lua counts exactly.

local count, wrong = redis.call('GET', counter) or nil, nil
if count then
  if not string.find(count, '^%-?%d+$') or #count > 15 then
    wrong = {err = 'WRONGTYPE the value is not a count of Redisson'}
  end
  count = tonumber(count)
end
