-- Takes the lock, or (mode `wait`) a place in its queue.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id mode lease_ms span ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now | FULL length now | STALE now
-- mode is `try` or `wait`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the lease of
-- the hold in the way. more = 1: call again (touch or try), expired tickets stand before yours.

local id, mode, lease, span = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local not_after = tonumber(ARGV[7])
--@include hold

-- The fast path, before anything else is set up: free, and nobody waits.
if redis.call('EXISTS', lock, queue, tickets) == 0 and (not_after == 0 or now <= not_after) then
  return {'GRANTED', hold(id, lease, span), now}
end

local inbox_prefix, counts_everyone = ARGV[8], ARGV[9] == '1'
--@include queue

-- A resend, or the message that said so was lost.
if not free and redis.call('HEXISTS', lock, id) == 1 then
  extend(lease)
  return {'GRANTED', redis.call('HGET', lock, 'token'), now}
end

local ticket = id .. '/' .. lease .. '/' .. span
local stands = waits(ticket)

-- A request that lay in a frozen server's buffer must not lock for a client that gave up. What is held or queued
-- already is the client's to cancel, so that was decided first.
if not stands and not_after > 0 and now > not_after then
  return {'STALE', now}
end

if mode == 'try' then
  local more, _, rest = promote({})
  -- Free, and none of those who wait can take it now: the caller stands behind them and is next.
  if rest == 'none' then
    return {'GRANTED', hold(id, lease, span), now}
  end
  takes_writes(lock)
  return {'BUSY', redis.call('PTTL', lock), more, now}
end

local waiters = not stands and overcrowded(tonumber(ARGV[6]))
if waiters then
  takes_writes(lock)
  return {'FULL', waiters, now}
end
enqueue(ticket, stands, ARGV[5])
local more, taken = promote({[ticket] = true})
if taken[ticket] then return {'GRANTED', taken[ticket], now} end
return {'QUEUED', redis.call('PTTL', lock), waiting, more, now}
