//! What the lock protects: a counter on a server of its own, which refuses a token smaller than the largest it has
//! seen.

use crate::support::server::Server;

pub(crate) struct Register(redis::Connection);

/// The register has seen a larger token.
#[derive(Debug)]
pub(crate) struct Refused;

impl Register {
    pub(crate) fn open(url: &str) -> Self {
        let connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        // Without a time limit: a read that has one fails with EINTR in a process that was stopped and goes on.
        connection.set_read_timeout(None).unwrap();
        Self(connection)
    }

    pub(crate) fn reset(&mut self, server: &Server) {
        server.allow_forever("register");
        redis::cmd("HSET").arg("register").arg(&["value", "0", "seen", "0"]).exec(&mut self.0).unwrap();
    }

    pub(crate) fn value(&mut self) -> u64 {
        redis::cmd("HGET").arg("register").arg("value").query(&mut self.0).unwrap()
    }

    /// Reads the counter. From now on, a smaller token is refused.
    pub(crate) fn read(&mut self, token: u64) -> Result<u64, Refused> {
        self.run(token, "")
    }

    pub(crate) fn write(&mut self, token: u64, value: u64) -> Result<u64, Refused> {
        self.run(token, &value.to_string())
    }

    fn run(&mut self, token: u64, value: &str) -> Result<u64, Refused> {
        let script = "if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'seen')) then return -1 end
             redis.call('HSET', KEYS[1], 'seen', ARGV[1])
             if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'value', ARGV[2]) end
             return tonumber(redis.call('HGET', KEYS[1], 'value'))";
        let mut eval = redis::cmd("EVAL");
        let answer: i64 = eval.arg(script).arg(1).arg("register").arg(token).arg(value).query(&mut self.0).unwrap();
        u64::try_from(answer).map_err(|_| Refused)
    }
}
