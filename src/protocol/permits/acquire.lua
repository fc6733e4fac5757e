-- Takes permits, or (mode `wait`) a place in the queue for them.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id mode lease_ms units limit ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now | FULL length now | STALE now |
--        OVER limit now
-- mode is `try` or `wait`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the first lease in
-- the way, negative if there is none. OVER: more units than the limit in force. more = 1: call again (touch or try),
-- there is more to purge, to drop or to grant than one call may.

local id, mode, lease, units, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local not_after = tonumber(ARGV[8])
--@include units

-- The fast path, before anything else is set up: nothing to purge, nobody waits, and there is room.
if sound and not (first and first <= now) and room(units) and (not_after == 0 or now <= not_after)
  and redis.call('EXISTS', queue, tickets) == 0 and redis.call('HEXISTS', permits, id) == 0 then
  return {'GRANTED', hold(id, lease, units), now}
end

local inbox_prefix, counts_everyone = ARGV[9], ARGV[10] == '1'
--@include queue

-- A resend, or the message that said so was lost.
local held, token = held_by(id)
if held then
  extend(id, lease)
  return {'GRANTED', token, now}
end

local ticket = id .. '/' .. lease .. '/' .. units .. '/' .. tonumber(ARGV[5])
local stands = waits(ticket)

-- A request that lay in a frozen server's buffer must not take permits for a client that gave up. What is held or
-- queued already is the client's to cancel, so that was decided first.
if not stands and not_after > 0 and now > not_after then
  return {'STALE', now}
end

if units > limit then
  if stands then
    remove(ticket, '1')
    promote({})
  end
  takes_writes(permits)
  return {'OVER', limit, now}
end

if mode == 'try' then
  local more, _, rest = promote({})
  -- None of those who wait can take it now: the caller stands behind them and is next.
  if rest == 'none' and room(units) then
    return {'GRANTED', hold(id, lease, units), now}
  end
  takes_writes(permits)
  return {'BUSY', first_left(), more, now}
end

local waiters = not stands and overcrowded(tonumber(ARGV[7]), units)
if waiters then
  takes_writes(permits)
  return {'FULL', waiters, now}
end
enqueue(ticket, stands, ARGV[6])
local more, taken = promote({[ticket] = true})
if taken[ticket] then return {'GRANTED', taken[ticket], now} end
return {'QUEUED', first_left(), waiting, more, now}
