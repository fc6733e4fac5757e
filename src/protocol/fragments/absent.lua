-- Fragment: what is not there counts only on a server that takes writes.

-- Whether a command failed because its key is not of the type that our scripts give it. Any other error is about the
-- server or the user, and says nothing about the key.
local function wrong_type(reply)
  return string.find(reply.err, '^WRONGTYPE') ~= nil
end

-- A server that was demoted, or that cannot replicate or store, may not know of a hold or a ticket, or may forget it. So before
-- a script says that something is not there it has written, or it calls this: it deletes a field that no hash has, which
-- changes nothing and is not replicated. But the server looks first whether it takes writes, and if not, this raises why.
local shown
local function takes_writes(hash)
  if shown then return end
  local answer = redis.pcall('HDEL', hash, '')
  if type(answer) ~= 'number' and not wrong_type(answer) then
    -- Raises what the first call returned.
    redis.call('HDEL', hash, '')
  end
  shown = true
end
