-- Takes the lock, or (mode `wait`) a place in its queue.
-- KEYS: lock queue tickets fence
-- ARGV: attempt_id mode lease_ms budget ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: token | GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now | RETAINED ttl_ms more now |
-- FULL length now | STALE now
-- The first is a number and no list: granted, and the token is the server's time in microseconds, as it usually is.
-- RETAINED: busy, but the client of the hold in the way releases it for one that waits, unless it uses it.
-- mode is `try` or `wait`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the lease of
-- the hold in the way. more = 1: call again (heartbeat or try), expired tickets stand before this one.

local KEYS, ARGV = KEYS, ARGV
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, lease, budget, not_after = ARGV[1], ARGV[3], ARGV[4], ARGV[7]
local unused = redis.call('EXISTS', lock, queue, tickets) == 0
--@include clock
local late = not_after ~= '0' and now > not_after + 0

-- The fast path, before any function is made: the lock is free, and there is no queue.
if unused and not late then
  local token
--@include reserve
--@include hold
  return token == clock and micros or {'GRANTED', token, now}
end

local mode, inbox_prefix, counts_everyone = ARGV[2], ARGV[8], ARGV[9] == '1'
--@include mutex_hold
--@include absent
--@include mutex
--@include queue
--@include place
--@include promote
--@include newcomers
-- The rest of the lease of the hold in the way. If there is none, that of the hold that promote() writes is asked for
-- below.
local left = redis.call('PTTL', lock)
free = left == -2
local holder, held
if not free then
  local hold = redis.call('HGETALL', lock)
  holder, held = hold[1], hold[1] == id and hold[2]
end
open_queue()

-- A resend, or the message about the grant was lost.
if held then
  extend(lease)
  return {'GRANTED', string.match(held, '^%d*'), now}
end

local ticket = id .. '/' .. lease .. '/' .. budget
local queued = is_queued(ticket)

-- A request that lay in a frozen server's buffer must not lock for a client that gave up. Holds and tickets that exist
-- are the client's to cancel, so they were looked for first.
if not queued and late then
  return {'STALE', now}
end

if mode == 'try' then
  local more, _, rest = promote({})
  -- Free, and no waiter can take it now: the caller stands behind them and is next.
  if rest == 'none' then
    return {'GRANTED', write_hold(id, lease, budget), now}
  end
  takes_writes(lock)
  -- If the lock was free, promote() has granted it.
  if left == -2 then left, holder = redis.call('PTTL', lock), redis.call('HGETALL', lock)[1] end
  return {holder and string.sub(holder, -1) == 'r' and 'RETAINED' or 'BUSY', left, more, now}
end

local waiters = not queued and too_many_waiters(tonumber(ARGV[6]))
if waiters then
  takes_writes(lock)
  return {'FULL', waiters, now}
end
enqueue(ticket, queued, ARGV[5])
local more, granted = promote({[ticket] = true})
if granted[ticket] then return {'GRANTED', granted[ticket], now} end
--@include wanted
return {'QUEUED', left == -2 and redis.call('PTTL', lock) or left, waiting, more, now}
