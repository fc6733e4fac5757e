-- Takes permits, or a place in the queue for them: the last (mode `wait`) or the first (`first`).
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id mode lease_ms units limit ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: clock | 'token clock' | GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now |
-- RETAINED ttl_ms more now | FULL length now | STALE now | OVER limit now
-- The first two are no list: granted, and the server's time in microseconds, which is the token if that is not given.
-- RETAINED: busy, but the client of the first hold in the way releases it for one that waits, unless it uses it.
-- mode is `try`, `wait` or `first`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the first
-- lease in the way, negative if there is none. OVER: more units than the limit in force. more = 1: call again
-- (heartbeat or try), there is more to reap, to drop or to grant than one call may.

local KEYS, ARGV = KEYS, ARGV
local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease, units, limit, not_after = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
local keys = redis.call('EXISTS', permits, leases, queue, tickets)
--@include clock
local late = not_after ~= '0' and now > not_after + 0
local fences = limit == 'ALL_UNITS'

-- The fast path, before the functions are made: there is no queue, no limit is stored, and there is capacity.
local unused = keys == 0
local used = unused and 0
local left
if keys == 1 then
  -- Most likely a sole hold. No queue is beside it: a script that queues up a ticket first stores the hold in full.
--@include sole
  if sole then keys = 2 end
end
if keys == 2 and not late then
  -- Two of the four keys exist. If they are those of the permits, there is no queue.
  local fields = redis.call('HMGET', permits, 'used', 'limit', id)
  left = redis.call('PTTL', leases)
  used = left >= 0 and string.find(fields[1] or '', '^[1-9]%d*$') and not fields[2] and not fields[3] and fields[1]
  -- Expired holds are counted as held, and stay. The slow path removes them, before they are more than one call may
  -- remove.
  if used and used - MAX_EXPIRED >= 0 then
    used = redis.call('ZRANGE', leases, '0', '0', 'WITHSCORES')[2] - now >= 0 and used
  end
end
local fits = used and not late and limit - units - used >= 0
local token = not fences and '0'
if fits and fences then
  if units == limit then
    local budget = string.sub(id, -1) == 'r' and LARGEST_BUDGET or HANDOFF_BUDGET
--@include reserve
  else
    -- Readers have the token of the last writer. The counter has to live long enough.
--@include read_token
--@include fence_ttl
    fits = token and redis.call('PTTL', fence) >= fence_ttl - COUNTER_SLACK
  end
end
if fits then
  local reply = token == clock and micros or token .. ' ' .. clock
  if unused then
    -- The hold is stored short, like that of a lock.
    local lock = permits
    token = units .. ' ' .. token
--@include hold
    return reply
  end
  redis.call('ZADD', leases, now + lease, id)
  -- A TTL is only extended, because other holds may need the longer one. That of the hash is at least as long.
  for _, key in ipairs(left - lease < 0 and {leases, permits} or {}) do
    if type(redis.pcall('PEXPIRE', key, lease)) ~= 'number' then
      -- A lease must not end with its key. The second call raises what the first one returned.
      redis.call('ZREM', leases, id)
      redis.call('PEXPIRE', key, lease)
    end
  end
  redis.call('HSET', permits, id, units .. ' ' .. token, 'used', used + units)
  return reply
end

local mode = ARGV[2]
units, limit = units + 0, limit + 0
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
load_permits(first_lease())

local inbox_prefix, counts_everyone = ARGV[9], ARGV[10] == '1'
--@include queue
--@include place
--@include promote
--@include newcomers
open_queue()

-- A resend, or the message about the grant was lost.
local held, token = held_by(id)
if held then
  extend(id, lease)
  return {'GRANTED', token, now}
end

local ticket = id .. '/' .. lease .. '/' .. units .. '/' .. tonumber(ARGV[5])
local queued = is_queued(ticket)

-- A request that lay in a frozen server's buffer must not take permits for a client that gave up. Holds and tickets
-- that exist are the client's to cancel, so they were looked for first.
if not queued and late then
  return {'STALE', now}
end

if units > limit then
  if queued then
    remove(ticket, '1')
    promote({})
  end
  drop_ended()
  takes_writes(permits)
  return {'OVER', limit, now}
end

if mode == 'try' then
  local more, _, rest = promote({})
  -- No waiter can take it now: the caller stands behind them and is next.
  if rest == 'none' and has_capacity(units) then
    token = write_hold(id, lease, units)
    drop_ended()
    return {'GRANTED', token, now}
  end
  drop_ended()
  takes_writes(permits)
  local left, holder = first_left()
  return {holder and string.sub(holder, -1) == 'r' and 'RETAINED' or 'BUSY', left, more, now}
end

local waiters = not queued and too_many_waiters(tonumber(ARGV[7]), units)
if waiters then
  drop_ended()
  takes_writes(permits)
  return {'FULL', waiters, now}
end
enqueue(ticket, queued, ARGV[6], mode == 'first')
local more, granted = promote({[ticket] = true})
drop_ended()
if granted[ticket] then return {'GRANTED', granted[ticket], now} end
local left, holder = first_left()
--@include wanted
return {'QUEUED', left, waiting, more, now}
