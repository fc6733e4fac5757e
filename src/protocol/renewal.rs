//! Renewals of many holds, in few calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::call::Scripts;
use super::facts::Form;
use super::failure::Failure;
use super::kind::Kind;
use super::reply::Renewed;
use super::resource::RenewArgs;

impl Kind {
    /// The name of the script that renews a hold of this kind. Holds with the same script are renewed in one call.
    /// `in_full`: whether the hold is known to be stored in full.
    pub(crate) fn renewal(self, in_full: &AtomicBool) -> Option<&'static str> {
        let form = self.form(in_full);
        self.with(|resource| resource.held().map(|held| held.renewal(form).name()))
    }
}

impl Scripts<'_> {
    /// Renews holds with the same [renewal](Kind::renewal). An answer that takes longer than `within` is of no use.
    ///
    /// A hold that is stored short is asked for by its main key alone: a cluster that moves the slot refuses a call if
    /// only some of its keys exist. Holds that turn out to be stored in full are asked for once more.
    pub(crate) async fn renew(self, holds: &[RenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        let mut renewed = self.renew_as(holds, form_of(holds), within).await?;
        if let Some(again) = in_full(&mut renewed, holds) {
            let answer = self.renew_as(&again, Form::InFull, within).await;
            return renewed.completed(answer);
        }
        Ok(renewed)
    }

    /// Like [`renew`](Self::renew), for holds whose renewal counts once `replicas` replicas have acknowledged it. A
    /// lease of zero would write nothing, so replicas would acknowledge it at once.
    pub(crate) async fn renew_acknowledged(
        self,
        holds: &[RenewArgs<'_>],
        replicas: u32,
        within: Duration,
    ) -> Result<Renewed, Failure> {
        let mut renewed = self.renew_acknowledged_as(holds, form_of(holds), replicas, within).await?;
        if let Some(again) = in_full(&mut renewed, holds) {
            let answer = self.renew_acknowledged_as(&again, Form::InFull, replicas, within).await;
            return renewed.completed(answer);
        }
        Ok(renewed)
    }

    async fn renew_as(self, holds: &[RenewArgs<'_>], form: Form, within: Duration) -> Result<Renewed, Failure> {
        let kind = kind_of(holds);
        if holds.len() < 2 || !self.connection.topology().one_name_per_call {
            return self.send_within(kind.held(|held| held.renew(holds, form))?, Some(within)).await;
        }
        let calls = holds.chunks(1).map(|hold| kind.held(|held| held.renew(hold, form)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        Renewed::joined(self.send_each(&calls, within).await)
    }

    async fn renew_acknowledged_as(
        self,
        holds: &[RenewArgs<'_>],
        form: Form,
        replicas: u32,
        within: Duration,
    ) -> Result<Renewed, Failure> {
        let kind = kind_of(holds);
        let at_once = if self.connection.topology().one_name_per_call { 1 } else { holds.len().max(1) };
        let calls = holds.chunks(at_once).map(|holds| kind.held(|held| held.renew(holds, form)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let answers = self.send_acknowledged(&calls, replicas, within).await.into_iter();
        Renewed::joined(answers.map(|answer| answer.map(|(renewed, by)| renewed.acknowledged(by, replicas))).collect())
    }
}

fn kind_of(holds: &[RenewArgs<'_>]) -> Kind {
    holds.first().map_or(Kind::Lock, |hold| hold.keys.kind)
}

/// The form in which all of them are asked for first. If only some are known to be stored in full, it is not that one.
fn form_of(holds: &[RenewArgs<'_>]) -> Form {
    let is_short = |hold: &RenewArgs<'_>| hold.keys.kind.form(hold.in_full) == Form::Short;
    if holds.iter().any(is_short) { Form::Short } else { Form::InFull }
}

/// The holds that must be asked for in all their keys.
fn in_full<'a>(renewed: &mut Renewed, holds: &[RenewArgs<'a>]) -> Option<Vec<RenewArgs<'a>>> {
    let again: Vec<_> = renewed.in_full.iter().filter_map(|n| holds.get(*n)).copied().collect();
    again.iter().for_each(|hold| hold.in_full.store(true, Ordering::Relaxed));
    (!again.is_empty()).then_some(again)
}
