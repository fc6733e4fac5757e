-- Steps: load the permits, see the fragment permits. A sole hold is stored in full first.
-- Expects the fragment permits.

local first = first_lease()
if not first then
--@include sole
  if sole then first = first_lease() end
end
load_permits(first)
