//! A sentinel that says what a test tells it to.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::server::Server;

/// Dropping it ends it.
pub(crate) struct Fake {
    port: u16,
    said: Arc<Mutex<String>>,
    stopped: Arc<AtomicBool>,
}

impl Fake {
    /// It names this server under this epoch.
    pub(crate) fn naming(server: &Server, epoch: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let fake = Self { port, said: Arc::default(), stopped: Arc::default() };
        fake.name(server, epoch);
        let (said, stopped) = (fake.said.clone(), fake.stopped.clone());
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let said = said.clone();
                thread::spawn(move || serve(stream, &said));
            }
        });
        fake
    }

    /// From now on it names this server.
    pub(crate) fn name(&self, server: &Server, epoch: u64) {
        *self.said.lock().unwrap() = format!("{} {epoch}", server.port());
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn serve(mut stream: TcpStream, said: &Mutex<String>) {
    let mut buffer = [0; 64 * 1024];
    let mut unread = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..read]);
        let Some(end) = unread.windows(2).rposition(|pair| pair == b"\r\n") else { continue };
        let text = String::from_utf8(unread.drain(..end + 2).collect()).unwrap();
        let said = said.lock().unwrap().clone();
        let (port, epoch) = said.split_once(' ').unwrap();
        let mut answers = String::new();
        for word in text.split("\r\n") {
            match word {
                "HELLO" => answers += "%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n",
                "SETINFO" => answers += "+OK\r\n",
                "MYID" => answers += "-ERR unknown subcommand\r\n",
                "SENTINELS" => answers += "*0\r\n",
                "MASTER" => answers += &format!("%1\r\n$12\r\nconfig-epoch\r\n${}\r\n{epoch}\r\n", epoch.len()),
                "GET-MASTER-ADDR-BY-NAME" => {
                    answers += &format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
                }
                "SUBSCRIBE" => answers += ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n",
                _ => {}
            }
        }
        if stream.write_all(answers.as_bytes()).is_err() {
            return;
        }
    }
}
