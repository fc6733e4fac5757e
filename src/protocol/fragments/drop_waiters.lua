-- Steps: removes the tickets of a client from a part of the queue, and tells the client.
-- Expects the locals: queue, inbox_prefix, whose (empty for all clients), start. Expects the fragment queue.
-- Sets the locals: removed; next_start, the position of the first ticket that was not looked at; unseen, how many those
-- are.

local removed, next_start, told, ids = 0, start, {}, {}
for _ = 1, MAX_LOOKED_AT do
  local ticket = removed < MAX_REMOVED and redis.call('LINDEX', queue, next_start)
  if not ticket then break end
  local id, client = parse(ticket)
  if id and (whose == '' or client == whose) and remove(ticket, '1') then
    removed = removed + 1
    if not ids[client] then
      ids[client] = {'dropped'}
      told[#told + 1] = client
    end
    table.insert(ids[client], id)
  else
    next_start = next_start + 1
  end
end
-- To the inbox without a slot, which a client reads from its first moment on.
local inbox = string.match(inbox_prefix, '^[^{]*')
for _, client in ipairs(told) do redis.pcall('PUBLISH', inbox .. client, table.concat(ids[client], ' ')) end
local unseen = math.max(waiting - next_start, 0)
