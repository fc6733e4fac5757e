//! The acquisitions and holds of this program, counted by name.

use std::sync::Arc;

use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::red_lock::masters::Masters;

/// An acquisition of this program, and the hold that it becomes.
pub(super) struct Own {
    masters: Arc<Masters>,
    keys: Arc<Keys>,
}

impl Own {
    pub(super) fn new(masters: &Arc<Masters>, keys: &Arc<Keys>) -> Self {
        lock(&masters.contended).enter(&keys.name);
        Self { masters: masters.clone(), keys: keys.clone() }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        lock(&self.masters.contended).leave(&self.keys.name);
    }
}
