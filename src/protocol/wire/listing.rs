//! Lists of names.

use super::{Request, sent};
use crate::protocol::key::Named;
use crate::protocol::names::{self, Page, PrimitiveKind, Wanted};

/// Reads a page of the names that begin like this, encoded. `waited_for`: only names that have a queue.
pub fn name_page(
    prefix: &str,
    (cursor, count): (&str, u32),
    (kind, waited_for): (Option<PrimitiveKind>, bool),
    begins: &str,
) -> Request {
    let wanted = Wanted { kind, waited_for, begins };
    sent(names::names(&Named::listing(prefix, 0), prefix, Page { cursor, count }, wanted))
}
