-- Keeps the parties of one client waiting, and tells how the generations of the others have ended. Breaks the
-- generation if the lease of another party has ended.
-- KEYS: barrier tickets ended
-- ARGV: inbox_prefix [attempt_id ticket_ttl_ms]...
-- Reply: now ttl_ms [outcome number]...
-- outcome is WAITING, ENDED (the number says how, as in barrier_arrive) or GONE: nothing is known of the attempt id.
-- ttl_ms is what is left of the lease that ends first, or negative.

local barrier, tickets, ended = KEYS[1], KEYS[2], KEYS[3]
local inbox_prefix = ARGV[1]
--@include clock
--@include outlive
--@include absent
--@include barrier
load_barrier()

local waits, any = {}, false
for i = 2, #ARGV, 2 do
  answered[ARGV[i]] = true
  if redis.call('ZSCORE', tickets, ARGV[i]) then
    redis.call('ZADD', tickets, 'XX', now + ARGV[i + 1], ARGV[i])
    waits[ARGV[i]], any = true, true
  end
end
if any then
  outlive(tickets, QUEUE_TTL)
  prolong(keep)
  ends = tonumber(redis.call('ZRANGE', tickets, '0', '0', 'WITHSCORES')[2])
else
  takes_writes(barrier)
end
local broken = why_broken()
if broken then
  break_generation(all_tickets(), broken, keep)
  waits, any = {}, false
end
local reply = {now, any and ends - now or -1}
for i = 2, #ARGV, 2 do
  local number = not waits[ARGV[i]] and end_of(ARGV[i])
  reply[#reply + 1] = waits[ARGV[i]] and 'WAITING' or number and 'ENDED' or 'GONE'
  reply[#reply + 1] = number or ''
end
return reply
