-- Steps: try the right to publish. Expects the locals: probe, how.
-- Who may not publish would release, and wake nobody. It is told before it holds.

if probe ~= '' then
  if how == 'sharded' then redis.call('SPUBLISH', probe, '') else redis.call('PUBLISH', probe, '') end
end
