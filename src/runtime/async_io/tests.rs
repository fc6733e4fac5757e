//! The sockets of async-io, and how often they read.

use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ::async_io::Timer;
use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use futures::executor;
use futures::future::{Either, select};
use futures::poll;
use socket2::SockRef;

use super::*;
#[cfg(target_os = "linux")]
use crate::redis::dial::addresses::lab::Addresses;

/// A test that fails should not hang.
const LONG: Duration = Duration::from_secs(120);

/// A socket that counts how often it is read.
struct Counted {
    socket: TcpStream,
    reads: AtomicU32,
}

impl Read for &Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        (&self.socket).read(bytes)
    }
}

impl Write for &Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.socket).flush()
    }
}

impl AsFd for Counted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn connected() -> (Socket<Counted>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer.set_write_timeout(Some(LONG)).unwrap();
    (Socket::new(Async::new(Counted { socket, reads: AtomicU32::new(0) }).unwrap()), peer)
}

fn block_on<F: Future>(body: F) -> F::Output {
    match executor::block_on(select(pin!(body), Timer::after(LONG))) {
        Either::Left((output, _)) => output,
        Either::Right(_) => panic!("nothing has woken the task"),
    }
}

impl Socket<Counted> {
    fn reads(&self) -> u32 {
        self.inner.get_ref().reads.load(Ordering::Relaxed)
    }
}

#[test]
fn each_answer_is_read_once() {
    let (mut socket, mut peer) = connected();
    let mut buffer = [0; 64];
    block_on(async {
        // The first read finds nothing, and the second one is announced.
        assert!(poll!(Box::pin(socket.read(&mut buffer))).is_pending());
        assert_eq!(socket.reads(), 1);
        for answers in 1..=3 {
            peer.write_all(b":1\r\n").unwrap();
            assert_eq!(socket.read(&mut buffer).await.unwrap(), 4);
            assert!(poll!(Box::pin(socket.read(&mut buffer))).is_pending());
            assert_eq!(socket.reads(), 1 + answers, "nothing has arrived since");
        }
    });
}

#[test]
fn what_arrives_right_after_a_short_read_is_announced() {
    let (mut socket, mut peer) = connected();
    let mut buffer = [0; 64];
    block_on(async {
        peer.write_all(b"one").unwrap();
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 3);
        peer.write_all(b"two").unwrap();
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 3);
        assert_eq!(&buffer[..3], b"two");
    });
}

#[test]
fn the_rest_of_a_long_answer_is_read_at_once() {
    let (mut socket, mut peer) = connected();
    let mut buffer = [0; 4];
    block_on(async {
        peer.write_all(b"12345678").unwrap();
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 4);
        assert!(poll!(Box::pin(socket.read(&mut buffer))).is_ready());
        assert_eq!(&buffer, b"5678");
    });
}

#[test]
fn an_answer_longer_than_one_read_is_read_on_at_once() {
    let (mut socket, mut peer) = connected();
    let mut buffer = vec![0; 2 * CHUNK];
    block_on(async {
        peer.write_all(&vec![7; CHUNK + 1]).unwrap();
        assert_eq!(socket.read(&mut buffer).await.unwrap(), CHUNK);
        assert!(matches!(poll!(Box::pin(socket.read(&mut buffer[CHUNK..]))), Poll::Ready(Ok(1))));
        assert_eq!(&buffer[..=CHUNK], vec![7; CHUNK + 1]);
    });
}

#[test]
fn only_the_bytes_of_the_answer_are_written_into_the_readers_room() {
    let (mut socket, mut peer) = connected();
    let mut room = [MaybeUninit::uninit(); 64];
    let mut buffer = ReadBuf::uninit(&mut room);
    peer.write_all(b":1\r\n").unwrap();
    block_on(poll_fn(|cx| Pin::new(&mut socket).poll_read(cx, &mut buffer))).unwrap();
    assert_eq!(buffer.filled(), b":1\r\n");
    assert_eq!(buffer.initialized().len(), 4);
}

#[test]
fn the_end_of_the_stream_is_seen_after_a_short_read() {
    let (mut socket, mut peer) = connected();
    let mut buffer = [0; 64];
    block_on(async {
        peer.write_all(b"last").unwrap();
        drop(peer);
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 0, "and again");
    });
}

#[test]
fn more_than_the_system_buffers_is_carried_both_ways() {
    // Small buffers, so that little is enough and a loaded machine has time for it.
    const BUFFER: usize = 64 << 10;
    const BYTES: usize = 2 << 20;
    let (mut socket, mut peer) = connected();
    for socket in [SockRef::from(socket.inner.get_ref()), SockRef::from(&peer)] {
        socket.set_send_buffer_size(BUFFER).unwrap();
        socket.set_recv_buffer_size(BUFFER).unwrap();
    }
    let echo = std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut bytes = vec![0; BYTES];
            peer.read_exact(&mut bytes).unwrap();
            peer.write_all(&bytes).unwrap();
        });
        block_on(async {
            let sent: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
            socket.write_all(&sent).await.unwrap();
            let mut echo = vec![0; BYTES];
            socket.read_exact(&mut echo).await.unwrap();
            (echo == sent).then_some(())
        })
    });
    assert!(echo.is_some(), "the bytes differ");
}

#[test]
fn shutting_down_ends_the_stream_of_the_peer_only() {
    let (mut socket, mut peer) = connected();
    let mut buffer = [0; 64];
    block_on(async {
        socket.write_all(b"bye").await.unwrap();
        socket.shutdown().await.unwrap();
        let mut heard = String::new();
        peer.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "bye");
        peer.write_all(b"bye").unwrap();
        assert_eq!(socket.read(&mut buffer).await.unwrap(), 3);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_address_that_is_silent_is_followed_by_the_next_one() {
    let addresses = Addresses::new();
    let [.., accepting] = addresses.list();
    let stream = block_on(tcp(addresses.list())).unwrap();
    let (mut peer, _) = addresses.accepting.accept().unwrap();
    drop(stream);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0, "it was the stream's");
    let socket = block_on(connect(accepting)).unwrap();
    assert!(socket.get_ref().nodelay().unwrap(), "it has the options of every socket");
}
