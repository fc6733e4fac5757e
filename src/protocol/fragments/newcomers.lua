-- Fragment: how many waiters there may be.
-- Expects the fragments queue and promote, and mutex or permits.

-- Returns the number of waiters if a new one for this amount may not join them, else nil. Free capacity is handed out
-- first. This may make room in the queue, or the new one may be next because no other waiter can be notified.
local function too_many_waiters(max_waiters, amount, own)
  if max_waiters == 0 or waiting < max_waiters then return nil end

  -- Removes expired tickets from one end of the list, where that is cheap, a few per call. Those in between do not
  -- count as waiters, and are removed when they reach an end.
  local dropped = 0
  local function drop_from(index, side)
    while dropped < MAX_TRIMMED and waiting > 0 do
      local ticket = redis.call('LINDEX', queue, index)
      local expires = ticket and expiry(ticket)
      if not expires or expires > now then return end
      remove(ticket, side)
      dropped = dropped + 1
    end
  end
  drop_from('0', '1')
  drop_from('-1', '-1')

  if live_waiters() < max_waiters then return nil end
  local _, _, rest = promote({})
  local waiters = live_waiters()
  if waiters < max_waiters or rest == 'none' and has_capacity(amount, own) then return nil end
  return waiters
end
