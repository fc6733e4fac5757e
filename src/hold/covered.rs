//! Whether a lease has covered the work.

use crate::error::{ErrorKind, Result};

/// Returns the error of a release only if it says that the lease may not have covered the work.
pub(crate) fn covered(released: Result<()>) -> Result<()> {
    match released {
        Err(error) if matches!(error.kind(), ErrorKind::Lost | ErrorKind::WrongType | ErrorKind::Protocol) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
