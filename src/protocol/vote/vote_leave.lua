-- Releases a vote, and with it the turn, unless somebody waits for the turn.
-- KEYS: lock turn queue tickets
-- ARGV: attempt_id turn_id
-- Reply: released is_waited_for
-- released 1: the attempt had the vote. is_waited_for 1: the turn is left as it was, because the votes of the other
-- masters have to be released first. Otherwise the turn is not that attempt's any more.

local waited_for = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0
if not waited_for then redis.call('HDEL', KEYS[2], ARGV[2]) end
return {redis.call('HDEL', KEYS[1], ARGV[1]), waited_for and 1 or 0}
