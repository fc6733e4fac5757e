-- Reads a counter of Redisson without changing anything.
-- KEYS: counter
-- ARGV:
-- Reply: now count
-- A counter that does not exist is 0, and so is one below it.

local counter = KEYS[1]
--@include clock
--@include absent
--@include stored

if wrong then return wrong end
if not count or count < 1 then
  takes_writes(counter)
  count = 0
end
return {now, count}
