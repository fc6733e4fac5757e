//! Commands as arguments of a script, and the script that runs them.

use crate::steps::{Command, Word};

/// For each command: how it is called, the number of its words, and each word with its type.
pub(super) fn packed(commands: &[Command]) -> Vec<Vec<u8>> {
    let mut args = Vec::new();
    for Command { raises, words } in commands {
        args.push(if *raises { b"call".to_vec() } else { b"pcall".to_vec() });
        args.push(words.len().to_string().into_bytes());
        for word in words {
            let (kind, text) = match word {
                Word::Text(text) => ("text", text.clone()),
                Word::Number(number) => ("number", number.as_bytes().to_vec()),
                Word::False => ("false", Vec::new()),
                Word::Table => ("table", Vec::new()),
            };
            args.extend([kind.as_bytes().to_vec(), text]);
        }
    }
    args
}

/// Runs what `packed` has packed, and returns every reply with its type in Lua.
pub(super) const RUN: &str = "
local function show(value)
  local kind = type(value)
  if kind == 'number' or kind == 'string' then return {kind, value} end
  if kind ~= 'table' then return {kind, tostring(value)} end
  -- Before 7.0 an error of no command has no code, and what the server refuses begins with the place in the script.
  if value.err then
    local err = string.gsub(value.err, '^@user_script: %d+: ', '')
    return {'error', string.match(err, '^-?(%u+) ') or 'ERR'}
  end
  if value.ok then return {'status', value.ok} end
  local shown = {'table'}
  for i, item in ipairs(value) do shown[i + 1] = show(item) end
  return shown
end
local replies, at = {}, 1
while at <= #ARGV do
  local call, count, words = ARGV[at], tonumber(ARGV[at + 1]), {}
  at = at + 2
  for i = 1, count do
    local kind, word = ARGV[at], ARGV[at + 1]
    if kind == 'number' then word = tonumber(word) elseif kind == 'false' then word = false
    elseif kind == 'table' then word = {} end
    words[i] = word
    at = at + 2
  end
  replies[#replies + 1] = show(redis[call](unpack(words, 1, count)))
end
return replies
";
