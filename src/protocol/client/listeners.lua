-- Counts the subscribers to the inbox of a client; in a cluster, on this node only.
-- KEYS: scratch
-- ARGV: inbox
-- Reply: listeners now
-- scratch is neither read nor written: without a key, a call has no node in a cluster.

--@include clock
return {redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2], now}
