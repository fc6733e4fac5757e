//! Renews leases, and confirms grants by asking replicas.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::unconfirmed::{Group, Unconfirmed};
use crate::connection::ConnectionError;
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::{Hold, answer_within};
use crate::engine::replica_waits::WaitsOn;
use crate::mutant::{self, Mutant};
use crate::observe::{self, meter};
use crate::protocol::dispatch::{Failure, RenewArgs, Scripts};
use crate::protocol::renewed::{HoldState, Renewed};
use crate::runtime::Executor;

/// The parts of the watchdog that send renewals and record the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewals<'a> {
    pub(super) engine: &'a Engine,
    pub(super) executor: &'a dyn Executor,
    pub(super) clock: &'a ServerClock,
    pub(super) scripts: Scripts<'a>,
    pub(super) command_timeout: Duration,
}

impl Renewals<'_> {
    pub(super) fn group(self, hold: &Hold) -> Group {
        (hold.renewed_by(), self.scripts.connection.node_of(hold.keys.main()), hold.replicas)
    }

    pub(super) fn grouped(self, holds: Vec<Arc<Hold>>) -> BTreeMap<Group, Vec<Arc<Hold>>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for hold in holds {
            groups.entry(self.group(&hold)).or_default().push(hold);
        }
        groups
    }

    /// Renews the holds of one group.
    pub(super) async fn renew(self, replicas: u32, holds: Vec<Arc<Hold>>) {
        let sent = self.executor.now();
        // Permits that turn out to be stored in full are asked for again soon, like all that have no answer.
        let states = self.send_renewal(replicas, &holds).await;
        let now = self.executor.now();
        let states = match states {
            Ok(renewed) => renewed.holds,
            Err(failure) => {
                let refused = matches!(failure, Failure::Connection(ConnectionError::Refused { .. }));
                if refused && mutant::on(Mutant::RefusalTakenForLoss) {
                    self.engine.renewed(sent, now, &[], &holds);
                }
                // Whatever the reason is, even a refusal, the leases continue and end at their deadlines.
                self.engine.not_renewed(&holds, now);
                return;
            }
        };
        let (mut held, mut gone, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (hold, mut state) in holds.into_iter().zip(states) {
            if matches!(state, HoldState::Unacknowledged(_)) && mutant::on(Mutant::UnacknowledgedRenewalCounted) {
                state = HoldState::Held(Some(hold.token()));
            }
            match hold.found(state) {
                HoldState::Held(_) => held.push(hold),
                HoldState::NotHeld | HoldState::Unusable => gone.push(hold),
                HoldState::Unacknowledged(_) | HoldState::Unanswered => others.push(hold),
            }
        }
        self.engine.renewed(sent, now, &held, &gone);
        if !others.is_empty() {
            self.engine.not_renewed(&others, now);
        }
    }

    /// Confirms the grants of the group, batch by batch, until none is left.
    pub(super) async fn confirm(self, group: Group, unconfirmed: &Unconfirmed) {
        while let Some(mut holds) = unconfirmed.next(group) {
            while !holds.is_empty() {
                let now = self.executor.now();
                let (held, over): (Vec<_>, Vec<_>) = holds.into_iter().partition(|hold| !hold.remaining(now).is_zero());
                // The callers of these grants have given up or are gone. A call without time left would end the
                // connection for the others.
                over.iter().for_each(|hold| self.engine.confirmed(hold, Confirmation::TooFew(0)));
                holds = if held.is_empty() { held } else { self.confirm_batch(group.2, &held).await };
            }
        }
    }

    /// Confirms grants by one call. Returns the permits that turned out to be stored in full: they need another one.
    async fn confirm_batch(self, replicas: u32, holds: &[Arc<Hold>]) -> Vec<Arc<Hold>> {
        let sent = self.executor.now();
        let renewed = self.send_renewal(replicas, holds).await;
        let now = self.executor.now();
        let Renewed { holds: states, failure, in_full, .. } = match renewed {
            Ok(renewed) => renewed,
            Err(failure) => {
                for hold in holds {
                    self.engine.confirmed(hold, Confirmation::Failed(failure.clone()));
                }
                return Vec::new();
            }
        };
        let mut again = Vec::new();
        for (n, (hold, state)) in holds.iter().zip(states).enumerate() {
            if in_full.contains(&n) {
                again.push(hold.clone());
                continue;
            }
            let confirmation = match hold.found(state) {
                HoldState::Held(_) => {
                    let lease = hold.renewal(sent);
                    if !lease.is_zero() {
                        self.engine.extended(hold, lease, sent, now);
                    }
                    Confirmation::Acknowledged
                }
                HoldState::Unacknowledged(replicas) => Confirmation::TooFew(replicas),
                HoldState::NotHeld | HoldState::Unusable => {
                    self.engine.renewed(sent, now, &[], std::slice::from_ref(hold));
                    Confirmation::Gone
                }
                HoldState::Unanswered => failure.clone().map_or(Confirmation::TooFew(0), Confirmation::Failed),
            };
            self.engine.confirmed(hold, confirmation);
        }
        again
    }

    /// Renews the holds by one call, and waits for `replicas` replicas.
    async fn send_renewal(self, replicas: u32, holds: &[Arc<Hold>]) -> Result<Renewed, Failure> {
        let sent = self.executor.now();
        let args: Vec<RenewArgs<'_>> = holds.iter().map(|hold| hold.renewal_args(hold.asked(sent))).collect();
        // A fixed lease is only inspected, so its remaining time does not limit the call.
        let left = holds.iter().filter(|hold| hold.interval().is_some()).map(|hold| hold.remaining(sent)).min();
        let within = left.map_or(self.command_timeout, |left| answer_within(left, self.command_timeout));
        let renewed = match replicas {
            0 => self.scripts.renew(&args, within).await,
            _ => {
                let node = holds.first().map_or(0, |hold| self.scripts.connection.node_of(hold.keys.main()));
                let wait = self.engine.begin_wait(WaitsOn { node, replicas });
                let renewed = self.scripts.renew_acknowledged(&args, replicas, within).await;
                wait.answered(is_enough(&renewed));
                renewed
            }
        };
        let renewed = renewed.inspect_err(|failure| observe::not_renewed(holds.len(), failure))?;
        self.clock.observe(self.executor.now(), renewed.now);
        // A fixed lease is only looked at.
        let is_renewed = |(hold, state): &(&Arc<Hold>, &HoldState)| {
            matches!(state, HoldState::Held(_)) && !hold.renewal(sent).is_zero()
        };
        meter::renewed(holds.iter().zip(&renewed.holds).filter(is_renewed).count());
        if let Some(failure) = &renewed.failure {
            let unanswered = renewed.holds.iter().filter(|hold| **hold == HoldState::Unanswered).count();
            let unanswered = unanswered - renewed.in_full.len();
            observe::not_renewed(unanswered, failure);
        }
        Ok(renewed)
    }
}

/// Whether enough replicas have acknowledged the renewals. `None` if that is not known.
fn is_enough(renewed: &Result<Renewed, Failure>) -> Option<bool> {
    let holds = &renewed.as_ref().ok()?.holds;
    let is_held = |state: &HoldState| matches!(state, HoldState::Held(_));
    let is_missing = |state: &HoldState| matches!(state, HoldState::Unacknowledged(_));
    if holds.iter().any(is_held) { Some(true) } else { holds.iter().any(is_missing).then_some(false) }
}
