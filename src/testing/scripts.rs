//! The scripts that the checks run. They use commands of bowline's own scripts only, so that the rights of docs/acl.md
//! are enough, and the embedded server can run them.

use crate::protocol::Script;

/// Replies with each type in turn.
const ECHO: &str = "
    if ARGV[1] == 'nil' then return false end
    if ARGV[1] == 'integer' then return -3 end
    if ARGV[1] == 'status' then return {ok = 'FINE'} end
    if ARGV[1] == 'bytes' then return string.char(0, 13, 10, 255) end
    return {KEYS[1], ARGV[2], ARGV[3], 7, {}, {false, 'x'}}
";

/// Counts its executions for a key, and returns the count.
const COUNT: &str = "
    local count = redis.call('RPUSH', KEYS[1], ARGV[1])
    redis.call('PEXPIRE', KEYS[1], '600000')
    return count
";

/// The number of executions for a key.
const EXECUTED: &str = "return redis.call('LLEN', KEYS[1])";

const PUBLISH: &str = "return redis.call(ARGV[3], ARGV[1], ARGV[2])";

/// Fails with an error of its own, or with that of a command.
const FAIL: &str = "
    if ARGV[1] == 'own' then return {err = 'BOWLINETEST on purpose'} end
    redis.call('SET', KEYS[1], 'x', 'PX', '600000')
    return redis.call('RPUSH', KEYS[1], 'x')
";

/// Scripts of one check. No server has seen them before, because their sources contain the id of the check.
#[derive(Clone, Copy)]
pub(super) struct Scripts {
    pub(super) echo: &'static Script,
    pub(super) count: &'static Script,
    pub(super) executed: &'static Script,
    pub(super) publish: &'static Script,
    pub(super) fail: &'static Script,
}

impl Scripts {
    pub(super) fn of(run: &str) -> Self {
        Self {
            echo: new("testing_echo", run, ECHO),
            count: new("testing_count", run, COUNT),
            executed: new("testing_executed", run, EXECUTED),
            publish: new("testing_publish", run, PUBLISH),
            fail: new("testing_fail", run, FAIL),
        }
    }
}

/// Another script that counts, which no server has seen either.
pub(super) fn counting(unique: &str) -> &'static Script {
    new("testing_count", unique, COUNT)
}

/// A call needs a script that lives for ever, so each is leaked: some hundred bytes per check.
fn new(name: &'static str, unique: &str, text: &str) -> &'static Script {
    Box::leak(Box::new(Script::new(name, &format!("local _ = '{unique}'\n{text}"))))
}
