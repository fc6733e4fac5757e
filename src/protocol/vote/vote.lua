-- Votes for a proposed token, and takes the lock for the hold that proposes it: the part of one master in a RedLock.
-- KEYS: lock fence
-- ARGV: attempt_id lease_ms proposal owner granted not_after_ms set known_s
-- Reply: ACCEPTED proposal run_id uptime_s saved_s micros | REFUSED counter run_id uptime_s saved_s micros | BUSY
-- ttl_ms run_id uptime_s saved_s micros | STALE 0 run_id uptime_s saved_s micros | OTHER set run_id uptime_s saved_s
-- micros | micros
-- A number and no list: accepted, by the process that the caller knows.
-- REFUSED: the lock is taken, but the proposal is not larger than the counter. An attempt that has the lock already
-- keeps the largest of its tokens and the longest of its leases, because this may be a late copy. owner names the hold
-- on all masters: it may propose what it proposed before. granted 1: a majority has accepted the token already, and
-- this master takes the lock for that hold whatever its counter is. ttl_ms is what is left of the lease of the hold in
-- the way, -1 if that has no end. not_after_ms 0 means no limit. set is the set of masters that the caller knows,
-- <name>/<version>/<number of masters>, or empty if it does not say. OTHER: the vote before was for a set with which a
-- majority of the caller's set need not share a master, and its lease may not be over. known_s is the last save of the
-- process that the caller knows. The last four are what the server says of its process and its clock.

local turn
--@include clock
--@include ballot
--@include process
if set == '' and not late and redis.call('EXISTS', lock) == 0 then
--@include outnumbers
  if larger then
--@include voted_at_once
  end
end
--@include voting
--@include voted
