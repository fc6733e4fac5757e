-- Fragment: reading the fencing counter.

-- The number in a counter. One that is out of range was not written by a script, and must not break the lock.
local function counter(text)
  local n = tonumber(text or 0) or 0
  return n >= 0 and n < COUNTER_LIMIT and n or 0
end
