//! What is done to a link.

use std::sync::Arc;
use std::time::Duration;

use super::{Link, MOMENT};
use crate::executor::WORLD;
use crate::nodes::Node;

impl Link {
    /// Breaks the command connection, and the subscription's too if so asked; they are up again after `outage`.
    pub fn cut(self: &Arc<Self>, commands: bool, messages: bool, outage: Duration) {
        self.disturb(|state| {
            if commands {
                state.commands += 1;
                state.down = true;
            }
            if messages {
                state.messages += 1;
                state.messages_down = true;
            }
        });
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(outage).await;
            let primary = link.backend.primary();
            link.disturb(|state| {
                if commands && state.down {
                    state.node = primary;
                }
                state.down &= !commands;
                state.messages_down &= !messages;
            });
        }));
    }

    /// The next command connection leads to that server, not to the primary.
    pub fn lead_astray(self: &Arc<Self>, node: Node, outage: Duration) {
        self.cut(true, false, outage);
        let link = self.clone();
        let sleep = self.machine.process(WORLD).sleep(outage + MOMENT / 100);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            link.disturb(|state| state.node = node);
        }));
    }

    /// Half open: nothing gets through in either direction, and neither side is told.
    pub fn mute(self: &Arc<Self>, duration: Duration) {
        self.disturb(|state| state.mute = true);
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            // Lost data does not come back, because the connection is broken by then.
            link.disturb(|state| state.mute = false);
            link.cut(true, true, Duration::from_millis(20));
        }));
    }

    /// Half open the other way: requests get through and no reply does, until the client gives the connection up.
    pub fn silence(&self) {
        self.disturb(|state| state.silent = Some(state.commands));
    }

    /// The server has changed, and the client has not noticed yet.
    pub fn failed_over(&self) {
        self.disturb(|_| ());
    }

    /// From now on, some requests are executed twice.
    pub fn duplicate(&self) {
        self.change(|state| state.twice = true);
    }

    /// For a while, messages take that much longer; requests do not.
    pub fn lag(self: &Arc<Self>, lag: Duration, duration: Duration) {
        self.disturb(|state| state.lag = lag);
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            link.disturb(|state| state.lag = Duration::ZERO);
        }));
    }

    /// For a while, requests, replies and messages take that much longer.
    pub fn slow_down(self: &Arc<Self>, by: Duration, duration: Duration) {
        self.disturb(|state| state.slow = by);
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            let now = link.machine.now();
            link.disturb(|state| {
                state.slow = Duration::ZERO;
                // Data that was sent before is delayed for as long.
                state.disturbed = now + by;
            });
        }));
    }

    /// The process is gone, and its sockets with it.
    pub fn kill(&self) {
        self.change(|state| {
            state.closed = true;
            state.commands += 1;
            state.messages += 1;
            state.pipe = None;
        });
    }
}
