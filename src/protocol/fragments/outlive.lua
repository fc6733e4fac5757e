-- Fragment: keys that hold several leases.

-- Lets the key live for at least `ttl` ms, a number or, which is faster, its text. A shorter lease must not shorten the
-- life that a longer one needs.
local function outlive(key, ttl)
  if redis.call('PTTL', key) < ttl + 0 then redis.call('PEXPIRE', key, ttl) end
end
