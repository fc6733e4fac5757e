//! What is done to the processes, the network and the server.

use std::sync::Arc;
use std::time::Duration;

use crate::executor::{Process, WORLD};
use crate::network::Link;
use crate::nodes::Failover;
use crate::random::Random;
use crate::world::{MS, World};

/// Faults happen until then; afterwards everybody must come to an end.
const FAULTS_END: Duration = Duration::from_secs(40);

/// What a replica answers to a script that writes.
pub const READONLY: &str = "READONLY You can't write against a read only replica.";

/// How servers refuse what writes, and nothing else.
pub const REFUSALS: [&str; 3] = [
    READONLY,
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
];

/// Does to the world what the run's faults allow.
pub struct Storm {
    pub world: Arc<World>,
    pub links: Vec<Arc<Link>>,
    pub random: Random,
    pub sets_clock: bool,
}

impl Storm {
    pub async fn rage(mut self) {
        if self.world.faults.network && self.random.one_in(2) {
            self.links.iter().for_each(|link| link.duplicate());
        }
        let world = self.world.clone();
        let machine = world.machine.clone();
        let executor = machine.process(WORLD);
        while machine.now() < FAULTS_END && !world.state.lock().unwrap().running.is_empty() {
            let calm = self.random.between(MS, 400 * MS);
            executor.sleep(calm).await;
            self.strike();
        }
        // Everything that is frozen or down recovers by itself.
    }

    fn strike(&mut self) {
        let faults = self.world.faults;
        let mut kinds: Vec<u64> = Vec::new();
        if faults.network {
            kinds.extend([0, 1, 2, 3, 10, 12]);
        }
        if faults.network && faults.losses && !self.sets_clock {
            kinds.push(11);
        }
        if faults.freezes {
            kinds.extend([4, 5, 13]);
        }
        if faults.losses {
            // Only one of the two: if data is lost and the clock is set back, tokens may go back, which is not a bug.
            kinds.extend(if self.sets_clock { [8, 8] } else { [6, 7] });
        }
        if faults.failovers {
            kinds.extend([14, 14]);
        }
        if faults.forks {
            kinds.extend([14, 15, 16, 16, 17]);
        }
        if faults.crashes && self.links.len() > 1 {
            kinds.push(9);
        }
        let kind = *self.random.pick(&kinds);
        let index = self.random.below(self.links.len() as u64) as usize;
        let (process, link) = (index + 1, self.links[index].clone());
        let outage = self.random.between(MS, 1500 * MS);
        let long = self.random.between(10 * MS, 5000 * MS);
        let what = match kind {
            0 => {
                link.cut(true, false, outage);
                format!("commands of {process} cut for {outage:?}")
            }
            1 => {
                link.cut(false, true, outage);
                format!("messages of {process} cut for {outage:?}")
            }
            2 => {
                link.cut(true, true, outage);
                format!("{process} cut off for {outage:?}")
            }
            11 => {
                self.world.lose();
                self.world.server.flush();
                for link in &self.links {
                    link.cut(true, true, outage);
                }
                format!("the server restarts without data, for {outage:?}")
            }
            10 => {
                link.lag(long, outage);
                format!("messages of {process} take {long:?} longer for {outage:?}")
            }
            12 => {
                link.silence();
                format!("{process} has no replies on this connection any more")
            }
            3 => {
                link.mute(long);
                format!("{process} half open for {long:?}")
            }
            4 => {
                self.world.machine.freeze(process, long);
                format!("{process} stands still for {long:?}")
            }
            5 => {
                self.world.server.freeze(outage);
                format!("the server stands still for {outage:?}")
            }
            13 => {
                let line = *self.random.pick(&REFUSALS);
                self.world.server.refuse(line, outage);
                format!("for {outage:?}, writes are answered {line}")
            }
            14..=16 => {
                let how = [Failover::Orderly, Failover::Lossy, Failover::Split][kind as usize - 14];
                let draw = if faults.forks { self.random.next() } else { 0 };
                let told = self.world.server.fail_over(how, draw);
                if how == Failover::Split {
                    self.world.server.heal_after(long);
                }
                let parts = self.links.iter().map(|link| {
                    link.failed_over();
                    let (commands, messages) = (self.random.one_in(2), self.random.one_in(2));
                    if commands || messages {
                        link.cut(commands, messages, outage);
                    }
                    format!("{}{}", if commands { "c" } else { "-" }, if messages { "m" } else { "-" })
                });
                let parts: Vec<String> = parts.collect();
                format!("a failover: {told}; cut for {outage:?}: {parts:?}")
            }
            17 => self.world.server.stall(self.random.next(), long),
            6 => {
                self.world.lose();
                self.world.server.flush();
                "FLUSHALL".to_owned()
            }
            7 => {
                self.world.lose();
                let key = self.world.server.evict(self.random.next());
                format!("evicted {key:?}")
            }
            8 => {
                self.world.lose();
                let forward = self.random.one_in(2);
                self.world.server.step_clock(long, forward);
                format!("the server's clock {} {long:?}", if forward { "forward" } else { "back" })
            }
            _ => {
                if !self.random.one_in(10) {
                    return;
                }
                self.crash(process);
                format!("{process} dies")
            }
        };
        self.world.state.lock().unwrap().fault_count += 1;
        self.world.log(format!("-- {what}"));
    }

    /// The process ends without another word. Its guards stay valid to the end of their leases, and no other process
    /// may hold the lock until then.
    fn crash(&self, process: Process) {
        self.world.machine.kill(process);
        self.links[process - 1].kill();
        self.world.state.lock().unwrap().running.remove(&process);
    }
}
