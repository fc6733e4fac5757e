//! Connects to one of the addresses of a name.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::{FuturesUnordered, StreamExt};

use super::DialError;

/// How long an address has for itself before the next one is tried beside it: the delay that RFC 8305 recommends.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// The socket of the first address that accepts. An address that is silent delays the next one by a `pause` only, and
/// one that refuses does not delay it. Attempts that are not needed any more are dropped.
pub(crate) async fn first<T, C, P>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    connect: impl Fn(SocketAddr) -> C,
    pause: impl Fn() -> P,
) -> Result<T, DialError>
where
    C: Future<Output = io::Result<T>>,
    P: Future,
{
    let mut rest = alternate(addresses).into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failed = DialError::Name(io::Error::other("it has no address"));
    loop {
        attempts.extend(rest.next().map(&connect));
        let is_last = rest.len() == 0;
        let next = pin!(async {
            if is_last {
                pending::<()>().await;
            }
            pause().await;
        });
        match select(attempts.next(), next).await {
            Either::Left((Some(Ok(socket)), _)) => return Ok(socket),
            Either::Left((Some(Err(error)), _)) => failed = error.into(),
            Either::Left((None, _)) => return Err(failed),
            Either::Right(_) => {}
        }
    }
}

/// The families of addresses in turn, beginning with that of the first. A machine without a route for one family then
/// tries the other next.
fn alternate(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = addresses.into_iter().peekable();
    let Some(is_ipv4) = addresses.peek().map(SocketAddr::is_ipv4) else { return Vec::new() };
    let (family, others): (Vec<_>, Vec<_>) = addresses.partition(|address| address.is_ipv4() == is_ipv4);
    let longest = family.len().max(others.len());
    (0..longest).flat_map(|place| [family.get(place), others.get(place)]).flatten().copied().collect()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
pub(crate) mod lab;
#[cfg(test)]
mod tests;
