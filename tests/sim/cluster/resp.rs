//! The protocol of Redis, version 3: commands as clients write them, and answers as servers do.

use bowline::{Arg, Reply, Script};

/// The words of a command.
pub type Words = Vec<Vec<u8>>;

/// Takes the first command out of what has arrived. `None`: it is not whole yet.
pub fn take(buffer: &mut Vec<u8>) -> Option<Words> {
    let (count, mut at) = number(buffer, 0, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, start) = number(buffer, at, b'$')?;
        words.push(buffer.get(start..start + length)?.to_vec());
        at = start + length + 2;
    }
    if buffer.len() < at {
        return None;
    }
    buffer.drain(..at);
    Some(words)
}

/// A number behind its mark, and where its line ends.
fn number(buffer: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let line = buffer.get(at..)?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    assert_eq!(line[0], mark, "clients write lists of strings");
    let number = std::str::from_utf8(&line[1..end]).unwrap().parse().unwrap();
    Some((number, at + end + 2))
}

/// A call of a script of the library.
pub struct Eval<'a> {
    /// Whether it sends the source, and not the SHA1.
    pub whole: bool,
    pub script: &'static Script,
    pub keys: Vec<&'a str>,
    pub args: Vec<Arg<'a>>,
}

impl<'a> Eval<'a> {
    pub fn of(words: &'a [Vec<u8>]) -> Self {
        let word = |n: usize| std::str::from_utf8(&words[n]).unwrap();
        let whole = words[0].eq_ignore_ascii_case(b"EVAL");
        let is = |script: &&Script| if whole { script.source() == word(1) } else { script.sha1() == word(1) };
        let script = Script::all().find(is).expect("a script of the library");
        let count: usize = word(2).parse().unwrap();
        let keys = (3..3 + count).map(word).collect();
        let args = (3 + count..words.len()).map(|n| Arg::Text(word(n))).collect();
        Self { whole, script, keys, args }
    }
}

/// What a server says.
#[derive(Clone, Debug)]
pub enum Say {
    Status(&'static str),
    Error(String),
    Nil,
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Say>),
    Map(Vec<(Say, Say)>),
    Push(Vec<Say>),
}

pub fn text(text: impl Into<String>) -> Say {
    Say::Bytes(text.into().into_bytes())
}

impl From<Reply> for Say {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Nil => Self::Nil,
            Reply::Integer(number) => Self::Number(number),
            Reply::Bytes(bytes) => Self::Bytes(bytes),
            Reply::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            other => panic!("no script replies so: {other:?}"),
        }
    }
}

impl Say {
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut line = |mark: char, rest: &str| out.extend(format!("{mark}{rest}\r\n").bytes());
        match self {
            Self::Status(status) => line('+', status),
            Self::Error(error) => line('-', error),
            Self::Nil => line('_', ""),
            Self::Number(number) => line(':', &number.to_string()),
            Self::Bytes(bytes) => {
                line('$', &bytes.len().to_string());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Self::List(items) => {
                line('*', &items.len().to_string());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Push(items) => {
                line('>', &items.len().to_string());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Map(pairs) => {
                line('%', &pairs.len().to_string());
                for (key, value) in pairs {
                    key.write(out);
                    value.write(out);
                }
            }
        }
    }
}

#[test]
fn commands_are_taken_when_they_are_whole() {
    let written = b"*2\r\n$4\r\nEVAL\r\n$3\r\na\r\n\r\n*1\r\n$4\r\nPING\r\n";
    let mut buffer = Vec::new();
    let mut taken = Vec::new();
    for byte in written {
        buffer.push(*byte);
        taken.extend(take(&mut buffer));
    }
    assert_eq!(taken, [vec![b"EVAL".to_vec(), b"a\r\n".to_vec()], vec![b"PING".to_vec()]]);
    assert!(buffer.is_empty());
}
