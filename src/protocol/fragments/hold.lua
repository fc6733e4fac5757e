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
local ticket_pattern = '^(([^:]+):%d+)/(%d+)/(%d+)$'

local function oversized()
  return false
end

-- The attempt id whose hold ends in this call. Its field goes last: a key that is deleted and then written again is refused
-- half-way by a cluster that is moving it.
local ending

local function ends(id)
  -- A server without memory lets a script go on to the end that has begun to write, but not begin with what takes memory.
  takes_writes(lock)
  ending, free = id, true
end

local function hold(id, lease, span)
  local token = reserve(span, lease)
  redis.call('HSET', lock, id, '1', 'token', token)
  if redis.pcall('PEXPIRE', lock, lease) ~= 1 then
    -- Not a lock for ever. The second call raises what the first one returned.
    redis.call('DEL', lock)
    redis.call('PEXPIRE', lock, lease)
  end
  if id == ending then ending = nil end
  free = false
  return token
end

-- Of a hold that is there. Never shorter: this may be a late copy, and the lease may have been extended since.
local function extend(lease)
  if redis.call('PTTL', lock) <= tonumber(lease) then redis.call('PEXPIRE', lock, lease) else takes_writes(lock) end
end

local function undo(id)
  if ending then redis.call('HDEL', lock, id) else redis.call('DEL', lock) end
  free = true
end

-- After promote(): what `ends` was told of is over.
local function vacate()
  if not ending then return end
  if free then redis.call('DEL', lock) else redis.call('HDEL', lock, ending) end
end

-- A key of a wrong type is found here. The lock needs nothing else to be put in order.
local function settle()
  if free == nil then free = redis.call('HLEN', lock) == 0 end
  fenced()
  return 0
end
