#!lua
-- Deletes those of the given fields of a hash whose value is empty.
-- KEYS[1]: the hash. ARGV[1]: the number of the call. ARGV[2] and on: the fields.
-- Returns the number of the call, and how many fields were deleted.
local empty = {}
for at, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, 2))) do
  if value == '' then empty[#empty + 1] = ARGV[at + 1] end
end
if #empty > 0 then redis.call('HDEL', KEYS[1], unpack(empty)) end
return {ARGV[1], #empty}
