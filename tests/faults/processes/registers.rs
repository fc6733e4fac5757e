//! What the lock protects.

/// Two registers that the lock protects: one refuses a token smaller than the largest it has seen, the other takes
/// everything.
pub(crate) struct Registers(redis::Connection);

impl Registers {
    pub(crate) fn open(url: &str) -> Self {
        Self(redis::Client::open(url).unwrap().get_connection().unwrap())
    }

    /// Writes to both. Says whether the first accepted it.
    pub(crate) fn write(&mut self, token: u64) -> bool {
        let script = "redis.call('RPUSH', KEYS[2], ARGV[1])
             redis.call('PEXPIRE', KEYS[2], 600000)
             if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return 0 end
             redis.call('SET', KEYS[1], ARGV[1], 'PX', 600000)
             return 1";
        let mut eval = redis::cmd("EVAL");
        eval.arg(script).arg(2).arg("guarded").arg("unguarded").arg(token).query(&mut self.0).unwrap()
    }

    pub(crate) fn guarded(&mut self) -> u64 {
        redis::cmd("GET").arg("guarded").query(&mut self.0).unwrap()
    }

    pub(crate) fn unguarded(&mut self) -> Vec<u64> {
        redis::cmd("LRANGE").arg("unguarded").arg(0).arg(-1).query(&mut self.0).unwrap()
    }
}
