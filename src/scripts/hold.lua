-- Fragment: the lock as the queue sees it: a resource with room for one hold.
-- Expects KEYS: lock queue tickets fence

local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--@include clock
--@include token
--@include absent

-- Known from settle() on, unless the script has looked before it.
local free

local function room()
  return free
end

-- A ticket's amount is its span, and every span fits.
local function oversized()
  return false
end

local function hold(id, lease, span)
  local token = reserve(span, lease)
  redis.call('HSET', lock, id, '1', 'token', token)
  if redis.pcall('PEXPIRE', lock, lease) ~= 1 then
    -- Not a lock for ever. The second call raises what the first one returned.
    redis.call('DEL', lock)
    redis.call('PEXPIRE', lock, lease)
  end
  free = false
  return token
end

local function undo()
  redis.call('DEL', lock)
  free = true
end

-- A key of a wrong type is found here. The lock needs nothing else to be put in order.
local function settle()
  if free == nil then free = redis.call('HLEN', lock) == 0 end
  fenced()
  return 0
end
