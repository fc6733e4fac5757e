use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;

use super::*;
use crate::redis::dial::handshake;

/// A stream that brings these bytes, and takes all.
struct Brings(io::Cursor<&'static [u8]>);

impl Read for Brings {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Brings {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to a server that gives these answers to the login, all at once.
fn connects(answers: &'static str, path: &str) -> bool {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}/{path}", listener.local_addr().unwrap().port());
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        let Ok(1..) = stream.read(&mut buffer) else { return };
        stream.write_all(answers.as_bytes()).unwrap();
        // Until the client has read them.
        let _ = stream.read(&mut buffer);
    };
    thread::Builder::new().spawn(serve).unwrap();
    let target = Arc::new(Target::parse(&url).unwrap());
    Blocking::connect(&target, Duration::from_secs(20)).is_some()
}

/// As the other connections do: a good-bye that goes to the wrong server releases nothing.
#[test]
fn the_server_is_checked_like_any_other() {
    let primary = "%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
    assert!(connects(primary, ""));
    assert!(!connects("%1\r\n$4\r\nrole\r\n$5\r\nslave\r\n", ""), "a replica");
    assert!(!connects("-NOAUTH no\r\n", ""));
    assert!(connects("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n+OK\r\n", "5"));
    assert!(!connects("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n-ERR DB index is out of range\r\n", "5"));
}

#[test]
fn answers_are_told_from_what_nobody_has_asked_for() {
    let bytes = b">2\r\n$10\r\ninvalidate\r\n_\r\n+FIRST\r\n>1\r\n$4\r\npush\r\n+SECOND\r\n";
    let mut wire = Wire::new(Box::new(Brings(io::Cursor::new(bytes))));
    let [first, second] = [(); 2].map(|()| wire.queue(&handshake::ping()).unwrap());
    assert_eq!(wire.answer(second), Ok(Value::SimpleString("SECOND".to_owned())));
    assert_eq!(wire.answer(first), Ok(Value::SimpleString("FIRST".to_owned())));
    let third = wire.queue(&handshake::ping()).unwrap();
    assert!(matches!(wire.answer(third), Err(ConnectionError::Unknown(_))), "it may have been executed");
    assert!(matches!(wire.queue(&handshake::ping()), Err(ConnectionError::Unreachable(_))), "nothing was sent");
}
