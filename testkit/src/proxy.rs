//! A TCP proxy in front of a server, for faults of connections while the server works on.
//!
//! Faults apply to all connections, those that are open and those to come, until they are taken back.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
}

#[derive(Default)]
struct Faults {
    /// Where new connections go, by turns.
    targets: Vec<u16>,
    accepted: u64,
    refuse: bool,
    stall: bool,
    /// Connections with a smaller number carry nothing any more.
    silent: u64,
    drop_replies: bool,
    /// The delay of requests on new connections.
    delay: Duration,
    /// Bytes from clients that still go through; then everything is cut.
    budget: Option<u64>,
    /// Both ends of every connection, to be shut down.
    open: Vec<TcpStream>,
    forwarded: u64,
    stopped: bool,
}

impl Proxy {
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            faults: Mutex::new(Faults { targets: vec![target], ..Faults::default() }),
            changed: Condvar::new(),
        });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener)
        });
        Self { address, shared }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Bytes from clients that reached the server.
    pub fn forwarded(&self) -> u64 {
        self.shared.lock().forwarded
    }

    /// How many connections were made.
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// New connections go to another server, as after a failover. Open ones stay where they are.
    pub fn lead_to(&self, target: u16) {
        self.shared.lock().targets = vec![target];
    }

    /// New connections go to one server after the other, as a balancer sends them.
    pub fn take_turns(&self, targets: impl Into<Vec<u16>>) {
        self.shared.lock().targets = targets.into();
    }

    /// Nothing goes through any more on the connections that are open now, for ever. New ones work.
    pub fn silence(&self) {
        let mut faults = self.shared.lock();
        faults.silent = faults.accepted;
    }

    /// Closes every connection. New ones work.
    pub fn cut(&self) {
        self.shared.lock().cut();
    }

    /// Lets `bytes` more from clients through, then cuts every connection, once.
    pub fn cut_after(&self, bytes: u64) {
        let mut faults = self.shared.lock();
        faults.budget = Some(bytes);
        if bytes == 0 {
            faults.cut();
        }
    }

    /// Swallows the server's answers. Requests still reach the server.
    pub fn drop_replies(&self, on: bool) {
        self.shared.lock().drop_replies = on;
    }

    /// Delays the requests on new connections.
    pub fn delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// Holds back the bytes of both directions until this is taken back.
    pub fn stall(&self, on: bool) {
        self.shared.lock().stall = on;
        self.shared.changed.notify_all();
    }

    /// New connections are closed at once. Open ones stay.
    pub fn refuse(&self, on: bool) {
        self.shared.lock().refuse = on;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut faults = self.shared.lock();
            faults.stopped = true;
            faults.stall = false;
            faults.silent = 0;
            faults.cut();
        }
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl Faults {
    fn cut(&mut self) {
        self.budget = None;
        for stream in self.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let Ok(client) = client else { continue };
            let mut faults = self.lock();
            if faults.stopped {
                return;
            }
            let number = faults.accepted;
            faults.accepted += 1;
            if faults.refuse {
                continue;
            }
            faults.targets.rotate_left(1);
            let target = *faults.targets.last().unwrap();
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
                faults.open.push(stream.try_clone().unwrap());
            }
            let asked = if faults.delay.is_zero() {
                client.try_clone().unwrap()
            } else {
                late(client.try_clone().unwrap(), faults.delay)
            };
            let ends = [(asked, server.try_clone().unwrap(), true), (server, client, false)];
            for (from, to, from_client) in ends {
                let shared = Arc::clone(self);
                thread::spawn(move || shared.copy(number, from, to, from_client));
            }
        }
    }

    fn copy(&self, number: u64, mut from: TcpStream, mut to: TcpStream, from_client: bool) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let mut faults =
                self.changed.wait_while(self.lock(), |faults| faults.stall || number < faults.silent).unwrap();
            if !from_client {
                if faults.drop_replies {
                    continue;
                }
                drop(faults);
                if to.write_all(&buffer[..read]).is_err() {
                    break;
                }
                continue;
            }
            let allowed = faults.budget.map_or(read, |budget| read.min(usize::try_from(budget).unwrap_or(read)));
            // Counted under the lock, so that the count matches the bytes that went through.
            let sent = to.write_all(&buffer[..allowed]);
            faults.forwarded += allowed as u64;
            if let Some(budget) = &mut faults.budget {
                *budget -= allowed as u64;
                if *budget == 0 {
                    faults.cut();
                }
            }
            if sent.is_err() || allowed < read {
                break;
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The bytes from `from`, each delayed, however many arrive meanwhile.
fn late(mut from: TcpStream, delay: Duration) -> TcpStream {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let (heard, said) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            heard.send((Instant::now(), buffer[..read].to_vec())).unwrap_or_default();
        }
    });
    thread::spawn(move || {
        while let Ok((at, bytes)) = said.recv() {
            thread::sleep(delay.saturating_sub(at.elapsed()));
            if near.write_all(&bytes).is_err() {
                break;
            }
        }
    });
    far
}
