-- Takes the turn and votes, in one step, if nobody has the turn or waits for it: an acquisition that nobody is in the
-- way of needs no request for its turn.
-- KEYS: lock fence turn queue tickets turn_fence
-- ARGV: attempt_id lease_ms proposal owner granted not_after_ms set known_s turn_id turn_lease_ms
-- Reply: TAKEN 0 run_id uptime_s saved_s micros | those of the vote, followed by the token of the turn if that was
-- taken | micros
-- A number and no list: accepted, by the process that the caller knows, and the turn was taken, whose token is the same
-- number.
-- TAKEN: another acquisition has the turn or waits for it, and nothing was changed. Otherwise the arguments and the
-- replies are those of the vote. With BUSY, the turn is taken all the same. Without the token of the turn, as with
-- OTHER and STALE, it is not; an attempt that has the vote already may have lost its turn, too.

local turn
--@include clock
--@include ballot
--@include process
if set == '' and not late and redis.call('EXISTS', lock, KEYS[3], KEYS[4], KEYS[5]) == 0 then
--@include outnumbers
  if larger then
--@include claimed
--@include voted_at_once
  end
end
--@include voting

if redis.call('EXISTS', KEYS[3], KEYS[4], KEYS[5]) ~= 0 then
  -- A second copy of the request finds the turn that the first one took.
  turn = string.match(redis.call('HGET', KEYS[3], ARGV[9]) or '', '^%d+')
  if not turn and not held then return {'TAKEN', 0, run_id, uptime, saved, micros} end
  -- Never shortened, because this may be a late copy.
  if turn and redis.call('PTTL', KEYS[3]) <= tonumber(ARGV[10]) then redis.call('PEXPIRE', KEYS[3], ARGV[10]) end
elseif late then
  return {'STALE', 0, run_id, uptime, saved, micros}
else
--@include claimed
end
--@include voted
