-- Fragment: one message to each client of several attempt ids: `<word> <attempt id>...`.
-- Expects the local: inbox_prefix
-- Such a message reports what has happened and grants nothing. So it stays true for a waiter that hears it through a
-- replica, and it does not matter whether anyone hears it: nothing is undone. A waiter that cannot be notified learns
-- the same from its next heartbeat.

local function send(word, ids)
  local clients, texts = {}, {}
  for _, id in ipairs(ids) do
    local client = string.match(id, '^([^:]+):')
    if client and not texts[client] then
      clients[#clients + 1] = client
      texts[client] = {word}
    end
    if client then table.insert(texts[client], id) end
  end
  for _, client in ipairs(clients) do
    local text = table.concat(texts[client], ' ')
    -- A prefix with a hash tag belongs to shard channels, which need another command.
    if string.find(inbox_prefix, '{', 1, true) then
      redis.pcall('SPUBLISH', inbox_prefix .. client, text)
    else
      redis.pcall('PUBLISH', inbox_prefix .. client, text)
    end
  end
end
