-- Steps: begin to end the caller's hold of a lock, or reply that it has none. promote() and drop_ended() come next.
-- Expects the locals: lock, id, now. Expects the fragments absent, mutex, queue and promote.

local held = redis.call('HEXISTS', lock, id) == 1
if held then free = false end
open_queue()

if not held then
  takes_writes(lock)
  local more = promote({})
  return {'NOT_HELD', more, now}
end
end_hold(id)
