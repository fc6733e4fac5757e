-- Steps: reserve `budget` fencing tokens, a number or its text, for a grant with that lease. They are larger than all
-- earlier ones. Expects the locals: fence (the counter's key), clock, budget, lease. Sets the locals: token, the first
-- of them, which the script declares; fence_ttl.
-- The clock is the floor, so that tokens grow even after the counter was lost; so in the usual case the clock's token
-- is stored at once, and the old counter is smaller.

token = clock
local last = token
-- The usual budget is one, and spelling a number takes as long as a command. Servers spell large numbers in different
-- ways.
if budget ~= '1' and budget ~= 1 then last = string.format('%.0f', token + budget - 1) end
--@include fence_ttl
local old = redis.call('SET', fence, last, 'PX', fence_ttl, 'GET')
-- Two texts of the same length are in the order of their numbers.
if old and not (#old == #token and old < token) then
--@include counter
  local highest = counter(old)
  if highest >= token + 0 then
    token = string.format('%.0f', highest + 1)
    redis.call('SET', fence, string.format('%.0f', highest + budget), 'PX', fence_ttl)
  end
end
