//! The end of several holds.

use futures::future::join_all;

use super::{Share, release};
use crate::error::Result;
use crate::hold::covered::covered;

/// Releases all of them at the same time and waits for the answers. An error that says that a hold did not last until
/// its release is returned before any other.
pub(crate) async fn release_all(shares: impl Iterator<Item = Share>) -> Result<()> {
    let errors = join_all(shares.map(release)).await.into_iter().filter_map(Result::err);
    errors.min_by_key(|error| covered(Err(error.clone())).is_ok()).map_or(Ok(()), Err)
}
