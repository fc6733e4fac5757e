//! The share that one guard has in a hold.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Result;
use crate::hold::owner::HoldOwner;
use crate::hold::parts::Part;

/// What a guard has of a hold. The last share ends the hold.
#[derive(Debug)]
pub(crate) struct Share {
    /// The part of the units, if the hold was split. The first field, because a part ends before its share of the hold.
    part: Option<Arc<Part>>,
    owned: Arc<HoldOwner>,
    /// Counts as one guard of the hold while it lives. `None`: no guard of the caller's, or the only one there can be.
    #[expect(dead_code, reason = "its life is what counts")]
    counted: Option<Arc<()>>,
}

impl Share {
    pub(crate) fn new(owned: Arc<HoldOwner>) -> Self {
        let counted = owned.guards.clone();
        Self { part: None, owned, counted }
    }

    /// Another share of the same hold, which does not count as a guard: the library keeps it beside the caller's.
    pub(crate) fn beside(&self) -> Self {
        Self { part: self.part.clone(), owned: self.owned.clone(), counted: None }
    }

    pub(crate) fn into_owned(self) -> Arc<HoldOwner> {
        self.owned
    }

    /// Whether both are of the same name and the same client.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.context(), other.context()) && self.hold.keys.main() == other.hold.keys.main()
    }

    /// The units of this share.
    pub(crate) fn units(&self) -> u32 {
        self.part.as_ref().map_or(self.owned.hold.amount, |part| part.units())
    }

    /// Takes `units` out into another share. `None` if one of them would have none.
    pub(crate) fn split(&mut self, units: u32) -> Option<Self> {
        if units == 0 || units >= self.units() {
            return None;
        }
        let part =
            self.part.get_or_insert_with(|| Arc::new(Part::whole(self.owned.context(), &self.owned.hold))).split(units);
        Some(Self { part: Some(Arc::new(part)), owned: self.owned.clone(), counted: None })
    }

    /// Adds the units of another share of the same hold. Returns a share of another hold.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), Self> {
        match (&self.part, &other.part) {
            (Some(part), Some(others)) if Arc::ptr_eq(&self.owned, &other.owned) => {
                part.merge(others);
                Ok(())
            }
            _ => Err(other),
        }
    }

    /// Whether the share has all units of the hold.
    pub(crate) fn is_whole(&self) -> bool {
        self.part.is_none()
    }

    /// Leaves the units in Redis, see [`HoldOwner::keep`].
    pub(crate) fn keep(self) -> Result<()> {
        self.owned.can_be_kept()?;
        if let Some(part) = &self.part {
            part.keep();
        }
        self.into_owned().keep()
    }

    /// Ends the part, as [`Part::end`] does. `None` also for a hold that was not split.
    pub(crate) fn end_part(&self) -> Option<u32> {
        self.part.as_ref()?.end()
    }
}

impl Deref for Share {
    type Target = Arc<HoldOwner>;

    fn deref(&self) -> &Arc<HoldOwner> {
        &self.owned
    }
}
