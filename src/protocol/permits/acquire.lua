-- Takes permits, or (mode `wait`) a place in the queue for them.
-- KEYS: permits leases queue tickets fence
-- ARGV: attempt_id mode lease_ms units limit ticket_ttl_ms max_waiters not_after_ms inbox_prefix counts_everyone
-- Reply: 'token clock' | GRANTED token now | QUEUED ttl_ms length more now | BUSY ttl_ms more now | FULL length now |
-- STALE now |
--        OVER limit now
-- The first is a text and no list: granted, and the server's time in microseconds.
-- mode is `try` or `wait`; max_waiters and not_after_ms 0 mean no limit. ttl_ms is what is left of the first lease in
-- the way, negative if there is none. OVER: more units than the limit in force. more = 1: call again (heartbeat or
-- try), there is more to reap, to drop or to grant than one call may.

local KEYS, ARGV = KEYS, ARGV
local permits, leases, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease, units, limit, not_after = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
local keys = redis.call('EXISTS', permits, leases, queue, tickets)
--@include clock
local late = not_after ~= '0' and now > not_after + 0
local fences = limit == 'ALL_UNITS'

-- The fast path, before the functions are made: there is no queue, no lease is over, no limit is stored, and there is
-- capacity.
local unused = keys == 0
local used = unused and 0
if keys == 2 and not late then
  -- Two of the four keys exist. If they are those of the permits, there is no queue.
  local fields = redis.call('HMGET', permits, 'used', 'limit', id)
  local ends = redis.call('ZRANGE', leases, '0', '0', 'WITHSCORES')[2]
  local sound = ends and ends - now > 0 and string.find(fields[1] or '', '^[1-9]%d*$')
  used = sound and not fields[2] and not fields[3] and fields[1]
end
local fits = used and not late and limit - units - used >= 0
local token = not fences and '0'
if fits and fences and units ~= limit then
  -- Readers have the token of the last writer. The fast path is for a counter that lives long enough.
--@include read_token
--@include counter_ttl
  fits = token and redis.call('PTTL', fence) >= counter_ttl - COUNTER_SLACK
end
if fits then
  if not token then
    local budget = HANDOFF_BUDGET
--@include reserve
  end
  -- A TTL is only extended, because other holds may need the longer one. That of the hash is at least as long.
  local extends = unused or redis.call('PTTL', leases) - lease < 0
  redis.call('HSET', permits, id, units .. ' ' .. token, 'used', unused and units or used + units)
  local done = redis.pcall('ZADD', leases, now + lease, id)
  if extends then
    done = type(done) == 'number' and redis.pcall('PEXPIRE', leases, lease) or done
    done = type(done) == 'number' and redis.pcall('PEXPIRE', permits, lease) or done
  end
  if type(done) == 'number' then return token .. ' ' .. clock end
  -- A hold must not last for ever.
  if unused then
    redis.call('UNLINK', permits, leases)
  else
    redis.call('HDEL', permits, id)
    redis.call('ZREM', leases, id)
    redis.call('HSET', permits, 'used', used)
  end
  -- One of these raises what its first call returned. The others change no hold.
  redis.call('ZADD', leases, 'XX', now + lease, id)
  redis.call('PEXPIRE', leases, lease)
  redis.call('PEXPIRE', permits, lease)
  return done
end

local mode = ARGV[2]
units, limit = units + 0, limit + 0
--@include counter
--@include token
--@include outlive
--@include permit_token
--@include absent
--@include permits
load_permits()

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
local already_queued = is_queued(ticket)

-- A request that lay in a frozen server's buffer must not take permits for a client that gave up. Holds and tickets
-- that exist are the client's to cancel, so they were looked for first.
if not already_queued and late then
  return {'STALE', now}
end

if units > limit then
  if already_queued then
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
  return {'BUSY', first_left(), more, now}
end

local waiters = not already_queued and too_many_waiters(tonumber(ARGV[7]), units)
if waiters then
  drop_ended()
  takes_writes(permits)
  return {'FULL', waiters, now}
end
enqueue(ticket, already_queued, ARGV[6])
local more, granted = promote({[ticket] = true})
drop_ended()
if granted[ticket] then return {'GRANTED', granted[ticket], now} end
return {'QUEUED', first_left(), waiting, more, now}
