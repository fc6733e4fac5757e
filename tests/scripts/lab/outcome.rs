//! What the scripts reply, typed, and how it is read.

use redis::{FromRedisValue, Value};

use super::attempt::timeless;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    Granted(u64),
    Queued { ttl: i64, length: i64, more: bool },
    Busy { ttl: i64, more: bool },
    Retained { ttl: i64, more: bool },
    Full(i64),
    Stale,
}

/// How a token is read: [`Words::token`], or [`Words::any_token`] where there is not always one.
type Token = fn(&mut Words) -> u64;

impl Acquired {
    pub fn read(word: &str, words: &mut Words, token: Token) -> Self {
        match word {
            "GRANTED" => Self::Granted(token(words)),
            "QUEUED" => Self::Queued { ttl: words.next(), length: words.next(), more: words.flag() },
            "BUSY" => Self::Busy { ttl: words.next(), more: words.flag() },
            "RETAINED" => Self::Retained { ttl: words.next(), more: words.flag() },
            "FULL" => Self::Full(words.next()),
            "STALE" => Self::Stale,
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    pub fn token(self) -> u64 {
        match self {
            Self::Granted(token) => token,
            other => panic!("not granted: {other:?}"),
        }
    }

    #[track_caller]
    pub fn granted(self) {
        assert!(matches!(self, Self::Granted(_)), "not granted: {self:?}");
    }

    /// Queued, behind a hold that has some of its lease left.
    #[track_caller]
    pub fn queued(self) -> i64 {
        match self {
            Self::Queued { ttl, length, more: false } if ttl > 0 => length,
            other => panic!("not queued behind a hold: {other:?}"),
        }
    }

    #[track_caller]
    pub fn busy(self) -> i64 {
        match self {
            Self::Busy { ttl, more: false } => ttl,
            other => panic!("not busy: {other:?}"),
        }
    }
}

/// What came of asking for the next hand-off budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    Granted(u64),
    Queued,
    Wanted,
    NotHeld,
    Stale,
}

impl Ahead {
    pub fn read(words: &mut Words) -> Self {
        match &*words.word() {
            "GRANTED" => Self::Granted(words.token()),
            "QUEUED" => Self::Queued,
            "NOT_HELD" => Self::NotHeld,
            "STALE" => Self::Stale,
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    pub fn token(self) -> u64 {
        match self {
            Self::Granted(token) => token,
            other => panic!("not granted: {other:?}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    Released { more: bool },
    Granted(u64),
    NotHeld { more: bool },
}

impl Released {
    pub fn read(words: &mut Words, token: Token) -> Self {
        match &*words.word() {
            "RELEASED" => Self::Released { more: words.flag() },
            "NOT_HELD" => Self::NotHeld { more: words.flag() },
            "GRANTED" => {
                let (token, _) = (token(words), words.flag());
                Self::Granted(token)
            }
            other => panic!("{other}"),
        }
    }
}

pub const RELEASED: Released = Released::Released { more: false };
pub const NOT_HELD: Released = Released::NotHeld { more: false };

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    Cancelled { more: bool },
    Released { more: bool },
    Gone { more: bool },
}

impl Cancelled {
    pub fn read(words: &mut Words) -> Self {
        match &*words.word() {
            "CANCELLED" => Self::Cancelled { more: words.flag() },
            "RELEASED" => Self::Released { more: words.flag() },
            "GONE" => Self::Gone { more: words.flag() },
            other => panic!("{other}"),
        }
    }
}

pub const CANCELLED: Cancelled = Cancelled::Cancelled { more: false };
pub const CANCEL_RELEASED: Cancelled = Cancelled::Released { more: false };
pub const CANCEL_GONE: Cancelled = Cancelled::Gone { more: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Granted(u64),
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    pub ttl: i64,
    pub more: bool,
    pub states: Vec<State>,
}

impl HeartbeatReply {
    pub fn read(words: &mut Words, attempts: usize, token: Token) -> Self {
        let (ttl, more) = (words.next(), words.flag());
        let mut state = || match &*words.word() {
            "WAITING" => words.word().is_empty().then_some(State::Waiting).unwrap(),
            "GONE" => words.word().is_empty().then_some(State::Gone).unwrap(),
            "GRANTED" => State::Granted(token(words)),
            other => panic!("{other}"),
        };
        Self { ttl, more, states: (0..attempts).map(|_| state()).collect() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forced {
    Released { token: u64, more: bool },
    NotHeld { more: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    pub holder: String,
    pub token: String,
    pub ttl: i64,
    pub waiters: i64,
}

/// The token of a hold that was renewed; 0 or -1 if there is no hold.
pub type Renewed = Result<String, i64>;

/// 1 for a hold, whatever its token.
pub fn is_held(renewed: &Renewed) -> i64 {
    renewed.as_ref().map_or_else(|state| *state, |_| 1)
}

/// The words of a reply, read in order.
pub struct Words(pub(super) std::vec::IntoIter<Value>);

impl Words {
    /// How many are not read yet.
    pub fn left(&self) -> usize {
        self.0.len()
    }
    #[track_caller]
    pub fn next<T: FromRedisValue>(&mut self) -> T {
        redis::from_redis_value(self.0.next().expect("a longer reply")).unwrap()
    }
    #[track_caller]
    pub fn word(&mut self) -> String {
        self.next()
    }
    #[track_caller]
    pub fn flag(&mut self) -> bool {
        match self.next::<i64>() {
            0 => false,
            1 => true,
            other => panic!("not a flag: {other}"),
        }
    }
    #[track_caller]
    pub fn token(&mut self) -> u64 {
        let token = self.any_token();
        assert!(token > 0);
        token
    }
    /// 0 for what does not fence.
    #[track_caller]
    pub fn any_token(&mut self) -> u64 {
        let text: String = self.next();
        let token = text.parse().unwrap_or_else(|_| panic!("not a token: {text:?}"));
        assert!(token < 1 << 53, "{token}");
        token
    }
    /// What a renewal says of one hold: its token, or why there is none.
    #[track_caller]
    pub fn renewed(&mut self) -> Renewed {
        match self.0.next().expect("a longer reply") {
            Value::Int(state) => Err(state),
            token => Ok(redis::from_redis_value(token).unwrap()),
        }
    }
    pub fn rest(&self) -> usize {
        self.0.len()
    }
    /// All that are not read yet, which are tickets.
    pub fn tickets(&mut self) -> Vec<String> {
        (0..self.rest()).map(|_| self.word()).collect()
    }
    /// What the client is told of others, behind the clock.
    pub fn told(&mut self) -> Vec<String> {
        let now = self.next();
        let told = (0..self.rest()).map(|_| timeless(&self.word(), now..=now)).collect();
        self.put_back(now);
        told
    }
    /// Puts it back for the next reader.
    pub fn put_back(&mut self, word: u64) {
        self.0 = vec![Value::Int(word.try_into().unwrap())].into_iter();
    }
}
