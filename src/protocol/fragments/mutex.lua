-- Fragment: the lock as the queue sees it: a resource with capacity for one hold.
-- Expects the locals: lock, fence. Expects the fragments mutex_hold and absent.

-- The parts of a ticket: attempt id, client, lease, hand-off budget.
local ticket_pattern = '^(([^:]+):%d+r?)/(%d+)/(%d+)$'

local function has_capacity()
  return free
end

local function exceeds_limit()
  return false
end

-- Checks the types of the keys. A lock has no expired holds to remove.
local function reap_expired()
  if free == nil then free = redis.call('HLEN', lock) == 0 end
  redis.call('STRLEN', fence)
  return 0
end

local function remove_hold(id)
  redis.call('HDEL', lock, id)
  free = true
end

-- Renews a hold that exists. Never shortens its lease: this may be a late copy of a call, and the lease may have been
-- extended since.
local function extend(lease)
  if redis.call('PTTL', lock) <= tonumber(lease) then redis.call('PEXPIRE', lock, lease) else takes_writes(lock) end
end

-- Makes room for promote(). drop_ended() must be called after promote().
local function end_hold(id)
  -- If memory is short, a server refuses the first write of a script if that write takes memory, but lets a script that
  -- has begun to write continue. Therefore the first write takes none.
  takes_writes(lock)
  ending, free = id, true
end

local function drop_ended()
  if ending then redis.call('HDEL', lock, ending) end
end
