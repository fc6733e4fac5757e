use std::task::Waker;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use futures::FutureExt;

use super::*;

#[test]
fn a_late_attempt_says_how_far_it_came() {
    let (progress, limit) = (DialProgress::default(), Duration::from_secs(3));
    assert_eq!(progress.late(limit).to_string(), "unreachable: no connection within 3s");
    progress.enter(Stage::Login);
    assert!(progress.late(limit).to_string().contains("use rediss://"));
    lock(&progress.0).first = b"-LOADING".to_vec();
    assert_eq!(progress.late(limit).to_string(), "no answer within 3s");
    #[cfg(feature = "tls")]
    {
        let progress = DialProgress::default();
        progress.enter(Stage::Tls);
        assert!(progress.late(limit).to_string().contains("use redis://"));
        progress.enter(Stage::Login);
        assert_eq!(progress.late(limit).to_string(), "no answer within 3s", "it is TLS already");
    }
}

#[test]
fn addresses_that_lead_nowhere_are_told_apart() {
    let of = |kind: io::ErrorKind| dial_failure(DialError::Socket(kind.into())).to_string();
    assert_eq!(of(io::ErrorKind::ConnectionRefused), "connection refused: nothing listens at this address");
    assert!(of(io::ErrorKind::HostUnreachable).starts_with("unreachable"));
    assert!(of(io::ErrorKind::NetworkUnreachable).starts_with("unreachable"));
    assert!(of(io::ErrorKind::TimedOut).starts_with("unreachable"));
    assert_eq!(of(io::ErrorKind::NotFound), "there is no such socket");
    let name = dial_failure(DialError::Name(io::Error::other("no such host")));
    assert_eq!(name.to_string(), "the name is not resolved: no such host");
}

/// A server that has made TLS with the client is no TLS port that was dialled without.
#[cfg(feature = "tls")]
#[test]
fn a_login_over_tls_is_not_dialled_the_other_way() {
    let progress = DialProgress::default();
    assert!(!progress.is_unanswered(), "it is not reached");
    for (stage, is_unanswered) in [(Stage::Login, true), (Stage::Tls, true), (Stage::Login, false)] {
        progress.enter(stage);
        assert_eq!(progress.is_unanswered(), is_unanswered, "{stage:?}");
    }
}

/// Reads along with a stream that brings this, piece by piece.
fn read_along(pieces: &[&str]) -> Arc<DialProgress> {
    let (near, mut far) = duplex(64);
    let progress = Arc::new(DialProgress::default());
    let mut stream = progress.watch(Box::new(near));
    for piece in pieces {
        far.write_all(piece.as_bytes()).now_or_never().unwrap().unwrap();
        let mut buffer = [0; 64];
        let mut buffer = ReadBuf::new(&mut buffer);
        // The caller has read something else before.
        buffer.put_slice(b"+OK");
        let read = Pin::new(&mut stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
        assert!(matches!(read, Poll::Ready(Ok(()))));
    }
    progress
}

fn hung_up() -> Failure {
    Failure::Io("closed".to_owned())
}

#[test]
fn the_protocol_is_known_however_its_first_bytes_arrive() {
    let pieces: [&[&str]; 3] =
        [&["HTTP/1.1 400"], &["HT", "TP/1.1"], &["H", "T", "T", "P", "/", "1", ".", "1", " 400"]];
    for pieces in pieces {
        let failure = read_along(pieces).explain(hung_up());
        assert!(matches!(&failure, Failure::Unsupported(why) if why.contains("HTTP")), "{pieces:?}: {failure}");
    }
    let failure = read_along(&["SSH-2.0"]).explain(hung_up());
    assert!(matches!(&failure, Failure::Unsupported(why) if why.contains("does not speak")), "{failure}");
    let failure = read_along(&["\x15", "\x03\x01"]).explain(hung_up());
    assert!(matches!(&failure, Failure::Unsupported(why) if why.contains("use rediss://")), "{failure}");
}

/// A server that has answered in RESP is neither another one nor one with TLS.
#[test]
fn a_server_that_has_answered_is_a_redis() {
    let progress = read_along(&["-"]);
    assert!(!progress.is_unanswered());
    assert_eq!(progress.explain(hung_up()).to_string(), "closed");
    let progress = read_along(&[]);
    assert!(progress.is_unanswered());
    assert!(
        progress.explain(hung_up()).to_string().contains("hung up before its first answer; if the port is for TLS")
    );
    let refused = Failure::Unsupported("too old".to_owned());
    assert!(matches!(progress.explain(refused), Failure::Unsupported(_)), "it is explained already");
}

#[cfg(feature = "tls")]
#[test]
fn what_tls_says_comes_before_what_follows_from_it() {
    let progress = read_along(&[]);
    lock(&progress.0).failure = Some(Failure::Certificate("expired".to_owned()));
    assert!(matches!(progress.explain(hung_up()), Failure::Certificate(_)));
    let progress = Arc::new(DialProgress::default());
    progress.enter(Stage::Tls);
    let _stream = progress.watch(Box::new(duplex(64).0));
    assert_eq!(progress.explain(hung_up()).to_string(), "closed", "the port is for TLS, and is asked for TLS");
}

/// The server has said this, and has hung up before the first write.
struct HungUp {
    said: Option<io::Result<&'static str>>,
    written: io::ErrorKind,
}

impl AsyncRead for HungUp {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.said.take() {
            Some(said) => said.map(|said| buffer.put_slice(said.as_bytes())),
            None => Ok(()),
        })
    }
}

impl AsyncWrite for HungUp {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(self.written.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(self.written.into()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(self.written.into()))
    }
}

/// How a write, a write of two slices and a flush end.
fn writes(stream: &mut Stream) -> [io::Result<usize>; 3] {
    let slices = [io::IoSlice::new(b"PI"), io::IoSlice::new(b"NG\r\n")];
    [
        stream.write(b"PING").now_or_never().unwrap(),
        stream.write_vectored(&slices).now_or_never().unwrap(),
        stream.flush().now_or_never().unwrap().map(|()| 0),
    ]
}

#[test]
fn a_write_that_meets_the_end_of_the_stream_first_leaves_it_to_the_reader() {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut};
    for (kind, is_end) in [(BrokenPipe, true), (ConnectionReset, true), (ConnectionAborted, true), (TimedOut, false)] {
        let progress = Arc::new(DialProgress::default());
        let mut stream = progress.watch(Box::new(HungUp { said: Some(Ok("-ERR max number")), written: kind }));
        let told = writes(&mut stream).map(|written| written.map_err(|error| error.kind()));
        assert_eq!(told, if is_end { [Ok(4), Ok(6), Ok(0)] } else { [Err(kind); 3] });
        let mut read = [0; 15];
        assert_eq!(stream.read(&mut read).now_or_never().unwrap().unwrap(), 15);
        assert!(&read == b"-ERR max number" && writes(&mut stream).iter().all(Result::is_err), "it is known");
    }
}

#[cfg(feature = "tls")]
#[test]
fn an_alert_that_came_before_the_first_write_says_why() {
    use tokio_rustls::rustls::{AlertDescription, Error};
    let said = io::Error::other(Error::AlertReceived(AlertDescription::CertificateRequired));
    let progress = Arc::new(DialProgress::default());
    progress.enter(Stage::Tls);
    let mut stream = progress.watch(Box::new(HungUp { said: Some(Err(said)), written: io::ErrorKind::BrokenPipe }));
    assert!(writes(&mut stream).iter().all(Result::is_ok));
    assert!(stream.read(&mut [0; 8]).now_or_never().unwrap().is_err());
    assert!(matches!(progress.explain(hung_up()), Failure::Certificate(_)));
}
