//! Renewals of many holds, in few calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::call::Scripts;
use super::facts::Form;
use super::failure::Failure;
use super::kind::Kind;
use super::renewed::Renewed;
use super::resource::RenewArgs;
use super::script::Script;
use crate::mutant::{self, Mutant};

impl Kind {
    /// The name of the script that renews a hold of this kind. Holds with the same script are renewed in one call.
    /// `in_full`: whether the hold is known to be stored in full.
    pub(crate) fn renewal(self, in_full: &AtomicBool) -> Option<&'static str> {
        let short = self.renewal_short(in_full);
        self.with(|resource| resource.held().map(|held| short.unwrap_or(held.renewal()).name()))
    }

    /// The form in which the server is asked for a hold.
    pub(super) fn form(self, in_full: &AtomicBool) -> Form {
        self.renewal_short(in_full).map_or(Form::InFull, |_| Form::Short)
    }

    /// `None`: the hold is known to be stored in full, or its kind is always stored so.
    fn renewal_short(self, in_full: &AtomicBool) -> Option<&'static Script> {
        if in_full.load(Ordering::Relaxed) || mutant::on(Mutant::ShortRenewedInFull) {
            return None;
        }
        self.with(|resource| resource.held().and_then(|held| held.renewal_short()))
    }
}

impl Scripts<'_> {
    /// Renews holds with the same [renewal](Kind::renewal). An answer that takes longer than `within` is of no use.
    ///
    /// A hold that may be stored short is asked for by its main key alone: a cluster that moves the slot refuses a call
    /// if only some of its keys exist. One that turns out to be stored in full must be asked for once more: see
    /// [`Renewed::in_full`].
    pub(crate) async fn renew(self, holds: &[RenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        let (kind, form) = (kind_of(holds), form_of(holds));
        if holds.len() < 2 || !self.connection.topology().one_name_per_call {
            let renewed = self.send_within(kind.held(|held| held.renew(holds, form))?, Some(within)).await;
            return renewed.map(|renewed| told(renewed, holds));
        }
        let calls = holds.chunks(1).map(|hold| kind.held(|held| held.renew(hold, form)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        Renewed::joined(self.send_each(&calls, within).await).map(|renewed| told(renewed, holds))
    }

    /// Like [`renew`](Self::renew), for holds whose renewal counts once `replicas` replicas have acknowledged it. A
    /// lease of zero would write nothing, so replicas would acknowledge it at once.
    pub(crate) async fn renew_acknowledged(
        self,
        holds: &[RenewArgs<'_>],
        replicas: u32,
        within: Duration,
    ) -> Result<Renewed, Failure> {
        let (kind, form) = (kind_of(holds), form_of(holds));
        let at_once = if self.connection.topology().one_name_per_call { 1 } else { holds.len().max(1) };
        let calls = holds.chunks(at_once).map(|holds| kind.held(|held| held.renew(holds, form)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let answers = self.send_acknowledged(&calls, replicas, within).await.into_iter();
        let answers = answers.map(|answer| answer.map(|(renewed, by)| renewed.acknowledged(by, replicas)));
        Renewed::joined(answers.collect()).map(|renewed| told(renewed, holds))
    }
}

fn kind_of(holds: &[RenewArgs<'_>]) -> Kind {
    holds.first().map_or(Kind::Lock, |hold| hold.keys.kind)
}

/// The form in which all of them are asked for. Only the script for those that are stored short tells of the others.
fn form_of(holds: &[RenewArgs<'_>]) -> Form {
    let is_short = |hold: &RenewArgs<'_>| hold.keys.kind.form(hold.in_full) == Form::Short;
    if holds.iter().any(is_short) { Form::Short } else { Form::InFull }
}

/// Remembers which holds are stored in full.
fn told(renewed: Renewed, holds: &[RenewArgs<'_>]) -> Renewed {
    let in_full = renewed.in_full.iter().filter_map(|n| holds.get(*n));
    in_full.for_each(|hold| hold.in_full.store(true, Ordering::Relaxed));
    renewed
}
