-- Renews the leases of many holds. Never creates a key; one key of a wrong type does not stop the others.
-- KEYS: [permits leases]...
-- ARGV: [attempt_id lease_ms longest_ms extended]...
-- Reply: now [held]...
-- held is a string, the token of the hold, if the attempt id holds permits and its lease is not over; the number 0 if
-- not, -1 if a key has a wrong type. lease_ms 0 looks without renewing; a lease that lasts longer stays as it is, but
-- for longest_ms: no call about this hold has asked for more, so that the server's clock was set back if there is more.
-- extended 1: an earlier call may have had a smaller longest_ms, so this one is stored with the hold. Then a call with
-- a smaller one is late, and shortens nothing. longest_ms 0 means no limit.
-- Every other error is raised: a server that takes no writes has not said that a hold is over.

--@include clock
--@include outlive
--@include absent
--@include permit_renewed

local reply = {now}
for i = 1, #KEYS / 2 do
  local held = renew(KEYS[2 * i - 1], KEYS[2 * i], ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i])
  if type(held) == 'number' then takes_writes(KEYS[2 * i - 1]) end
  reply[i + 1] = held
end
return reply
