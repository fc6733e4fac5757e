//! A fake server: it answers the login of a client, and misbehaves at a chosen step.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The step at which it misbehaves.
#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    /// It answers each login with this line.
    Login(&'static str),
    /// It closes the connection as soon as the client considers it ready.
    HangsUp,
    /// It executes no script.
    Scripts(&'static str),
    /// It reports no subscriber of any channel.
    Subscribers,
}

/// Counts its connections. It ends when it is dropped.
pub struct Fake {
    port: u16,
    accepted: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
}

/// More connections than any test needs. A client that dials without end is stopped here.
const MOST: u64 = 5000;

impl Fake {
    pub fn start(wrong: Wrong) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (accepted, stopped) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        thread::spawn({
            let (accepted, stopped) = (accepted.clone(), stopped.clone());
            move || {
                while let Ok((stream, _)) = listener.accept() {
                    if stopped.load(Ordering::SeqCst) || accepted.fetch_add(1, Ordering::SeqCst) >= MOST {
                        return;
                    }
                    thread::spawn(move || serve(stream, wrong));
                }
            }
        });
        Self { port, accepted, stopped }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, self.port).into(), Duration::from_secs(1));
    }
}

/// What a client says is short. A line may come in two parts: the proxy reads 16 KiB at a time.
fn serve(mut stream: TcpStream, wrong: Wrong) {
    let mut buffer = [0; 64 * 1024];
    let (mut unread, mut logged_in) = (Vec::new(), false);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..read]);
        let Some(end) = unread.windows(2).rposition(|pair| pair == b"\r\n") else { continue };
        let lines: Vec<u8> = unread.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&lines).into_owned();
        let words: Vec<&str> = text.split("\r\n").filter(|word| !word.starts_with(['$', '*'])).collect();
        let (mut answers, mut hang_up) = (String::new(), false);
        for (n, word) in words.iter().enumerate() {
            match *word {
                "HELLO" => match wrong {
                    Wrong::Login(line) => answers.push_str(line),
                    _ => {
                        hang_up |= matches!(wrong, Wrong::HangsUp) && logged_in;
                        logged_in = true;
                        answers.push_str("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n");
                    }
                },
                "SUBSCRIBE" => {
                    hang_up |= matches!(wrong, Wrong::HangsUp);
                    for (count, channel) in words[n + 1..].iter().take(2).enumerate() {
                        let (length, count) = (channel.len(), count + 1);
                        answers += &format!(">3\r\n$9\r\nsubscribe\r\n${length}\r\n{channel}\r\n:{count}\r\n");
                    }
                }
                "NUMSUB" => {
                    let subscribers = u8::from(!matches!(wrong, Wrong::Subscribers));
                    answers += &format!("*2\r\n$1\r\nx\r\n:{subscribers}\r\n");
                }
                "EVAL" | "EVALSHA" => answers.push_str(if let Wrong::Scripts(line) = wrong { line } else { "*0\r\n" }),
                "PING" => answers.push_str("+PONG\r\n"),
                "SETINFO" => answers.push_str("+OK\r\n"),
                "INFO" => answers.push_str("$0\r\n\r\n"),
                _ => {}
            }
        }
        if stream.write_all(answers.as_bytes()).is_err() || hang_up {
            return;
        }
    }
}
