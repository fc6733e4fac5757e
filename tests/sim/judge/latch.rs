//! I13: a wait ends well only if the latch was open meanwhile, or there was none; every waiter of a latch that opens or
//! ends is told (I3). I10: each call counts once, however often it is executed. I7: who waits no more leaves no ticket.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bowline::Call;
use bowline::embedded::Content;

use super::grants::{number, subjects, verb};
use super::view::{Dump, is_latch};
use super::waits::{Client, Moment};

mod uses;

#[derive(Default)]
pub struct Latches {
    names: BTreeMap<String, Latch>,
    uses: BTreeMap<u64, Use>,
    /// By attempt id.
    of: HashMap<String, u64>,
    /// Attempt ids whose call was executed, and has to be known to other copies; whether the server knows that still.
    done: HashMap<String, bool>,
    /// Which use is polled right now: what is called meanwhile, it calls.
    polled: Option<u64>,
    damaged: Option<Duration>,
    /// One call tells one waiter.
    one_is_told: bool,
}

/// What the server has of one name.
#[derive(Default)]
struct Latch {
    count: Option<u64>,
    /// When it ends, by the server's clock.
    ends: Duration,
    /// Attempt ids, and until when they live.
    tickets: BTreeMap<String, f64>,
    /// When it was last seen open, and when there was last none.
    open: Option<Duration>,
    none: Option<Duration>,
}

/// One operation of an actor.
struct Use {
    key: String,
    began: Duration,
    ended: Option<Duration>,
    /// As long as its ticket lives without a heartbeat.
    ticket: Duration,
    /// When it was first told to wait, and whether it knows.
    queued: Option<Duration>,
    knows: bool,
    /// When a request of it was last executed.
    asked: Duration,
    /// How often it has changed the count.
    changes: u32,
    /// It came to an end with an answer of the server.
    answered: bool,
    due: Option<Due>,
}

/// What a waiter must be told: that its latch was opened, or has ended.
struct Due {
    since: Duration,
    by_message: bool,
}

impl Latch {
    fn read(dump: &Dump, key: &str, now: Duration) -> Self {
        let mut latch = Self::default();
        if let Some(Content::Hash(fields)) = dump.get(key).map(|entry| &entry.content) {
            let field = |name: &[u8]| {
                let value = &fields.iter().find(|(field, _)| field == name)?.1;
                std::str::from_utf8(value).unwrap().parse::<u64>().ok()
            };
            latch.count = field(b"count");
            latch.ends = Duration::from_millis(field(b"ends").unwrap_or(0));
        }
        if let Some(Content::SortedSet(members)) = dump.get(&format!("{key}:tickets")).map(|entry| &entry.content) {
            let text = |id: &[u8]| String::from_utf8(id.to_vec()).unwrap();
            latch.tickets = members.iter().map(|(id, expiry)| (text(id), *expiry)).collect();
        }
        latch.end(now);
        latch
    }

    /// Whether it ends by its time to live.
    fn end(&mut self, server: Duration) -> bool {
        let over = self.count.is_some() && self.ends.as_millis() <= server.as_millis();
        if over {
            self.count = None;
        }
        over
    }
}

impl Latches {
    /// What a attempt id is of.
    fn used_by(&mut self, id: &str) -> Option<&mut Use> {
        self.uses.get_mut(self.of.get(id)?)
    }

    /// Everybody who waits must be told.
    fn all_are_due(&mut self, key: &str, now: Duration, lives: impl Fn(f64) -> bool) {
        let tickets = self.names.get(key).map(|latch| latch.tickets.clone()).unwrap_or_default();
        let mut tickets: Vec<(String, f64)> = tickets.into_iter().collect();
        tickets.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut told = false;
        for (id, expiry) in tickets {
            // The other waiters are notified by further calls. If the client of these is dead, they learn it from their
            // heartbeats.
            let by_message = lives(expiry) && !(told && self.one_is_told);
            told |= by_message;
            if let Some(waiter) = self.used_by(&id).filter(|waiter| waiter.ended.is_none()) {
                waiter.due = Some(Due { since: now, by_message });
            }
        }
    }

    /// What time has changed.
    fn pass(&mut self, now: Duration, server: Duration) {
        let keys: Vec<String> = self.names.keys().cloned().collect();
        for key in keys {
            let latch = self.names.get_mut(&key).unwrap();
            let over = latch.end(server);
            match latch.count {
                None => latch.none = Some(now),
                Some(0) => latch.open = Some(now),
                Some(_) => {}
            }
            if over {
                self.all_are_due(&key, now, |_| false);
            }
        }
    }

    fn read(&mut self, dump: &Dump, key: &str, now: Duration, server: Duration) {
        let old = self.names.remove(key).unwrap_or_default();
        let latch = Latch { open: old.open, none: old.none, ..Latch::read(dump, key, server) };
        self.names.insert(key.to_owned(), latch);
        self.pass(now, server);
    }

    pub fn damaged(&mut self, dump: &Dump, now: Duration, server: Duration) {
        self.pass(now, server);
        let keys: Vec<String> = self.names.keys().cloned().collect();
        keys.iter().for_each(|key| self.read(dump, key, now, server));
        for used in self.uses.values_mut() {
            (used.due, used.changes) = (None, 0);
        }
        self.done.values_mut().for_each(|known| *known = false);
        self.damaged = Some(now);
    }

    pub fn called(&mut self, call: Call<'_>, now: Duration) -> Option<String> {
        if let "cancel" | "heartbeat" = verb(&call) {
            let ended = |id: &&&str| {
                let waiter = self.of.get(**id).and_then(|n| self.uses.get(n));
                verb(&call) == "heartbeat" && waiter.is_some_and(|waiter| waiter.ended.is_some_and(|ended| ended < now))
            };
            let ids = subjects(&call);
            return ids.iter().find(ended).map(|id| format!("I8 heartbeat of {id}, which waits no more"));
        }
        if let (Some(n), [id]) = (self.polled, &subjects(&call)[..]) {
            self.of.insert((*id).to_owned(), n);
        }
        None
    }

    pub fn executed(
        &mut self,
        call: Call<'_>,
        word: &str,
        after: &Dump,
        now: Duration,
        server: Duration,
    ) -> Option<String> {
        let key = call.keys[0];
        if !self.names.contains_key(key) {
            self.names.insert(key.to_owned(), Latch::default());
        }
        self.pass(now, server);
        let (verb, ids) = (verb(&call), subjects(&call));
        let was = self.names[key].count;
        let new = Latch::read(after, key, server).count;
        let late = |n: usize| number(&call, n) > 0 && server.as_millis() > number(&call, n).into();
        let done = ids.first().and_then(|id| self.done.get(*id)).copied();
        let expected = match (verb, was) {
            _ if done == Some(true) || word == "MORE" => was,
            ("set", None | Some(0)) if !late(3) => Some(number(&call, 1)),
            ("count_down", Some(count @ 1..)) if !late(1) => Some(count - 1),
            ("delete", _) if !late(1) => None,
            _ => was,
        };
        let sure = done != Some(false);
        let mut wrong = (new != expected && sure)
            .then(|| format!("I10 {verb} by {ids:?}: {was:?} became {new:?}, not {expected:?}"));

        if verb == "wait" {
            let stands = self.names[key].tickets.contains_key(ids[0]);
            let right = match was {
                None => word == "NONE",
                Some(0) => word == "OPEN",
                Some(_) if late(2) && !stands => word == "STALE",
                Some(_) => word == "QUEUED",
            };
            wrong = wrong.or_else(|| (!right).then(|| format!("I13 {ids:?} at {was:?} is told {word}")));
        }
        let executed = matches!(verb, "set" | "count_down" | "delete") && !matches!(word, "STALE" | "MORE");
        if executed && !(is_first(&call) && was == new) {
            self.done.insert(ids[0].to_owned(), sure);
        }
        let ended = was.is_some_and(|count| count > 0) && new.is_none_or(|count| count == 0);
        let handoff = was.is_none() && new.is_some();
        let waits = verb == "wait";
        if ended {
            let ms = server.as_millis() as f64;
            self.all_are_due(key, now, |expiry| expiry > ms);
        }
        if handoff {
            // A waiter that has not learned of the end waits for the next latch.
            let tickets: Vec<String> = self.names[key].tickets.keys().cloned().collect();
            for id in tickets {
                if let Some(waiter) = self.used_by(&id) {
                    waiter.due = None;
                }
            }
        }
        let damaged = self.damaged;
        for id in ids {
            let Some(used) = self.used_by(id).filter(|_| !matches!(verb, "cancel" | "heartbeat")) else { continue };
            used.asked = now;
            used.changes += u32::from(was != new);
            if used.changes > 1 && wrong.is_none() {
                wrong = Some(format!("I10 {id} was executed twice for one call: {was:?} became {new:?}"));
            }
            if used.answered && was != new && damaged.is_none_or(|damaged| damaged < used.began) {
                wrong
                    .get_or_insert(format!("I10 {id} was answered, and then a copy of it did: {was:?} became {new:?}"));
            }
            if waits {
                used.ticket = Duration::from_millis(number(&call, 1));
                used.due = None;
                if word == "QUEUED" {
                    used.queued.get_or_insert(now);
                }
            }
        }
        self.read(after, key, now, server);
        wrong
    }

    /// The client knows that it waits.
    pub fn told_to_wait(&mut self, id: &str) {
        if let Some(waiter) = self.used_by(id) {
            waiter.knows = true;
        }
    }

    pub fn look(&mut self, moment: &Moment, client: impl Fn(&str) -> Option<Client>) -> Option<String> {
        self.pass(moment.now, moment.server);
        let due = |id: &String, n: &u64| self.uses.get(n)?.overdue(id, moment, client(id));
        let late = self.of.iter().find_map(|(id, n)| due(id, n));
        late.or_else(|| {
            let living = self.names.values().flat_map(|latch| &latch.tickets);
            let ms = moment.server.as_millis() as f64;
            let mut living = living.filter(|(_, expiry)| **expiry > ms);
            living.find_map(|(id, _)| self.uses.get(self.of.get(id)?)?.left(id, moment, client(id)))
        })
    }
}

/// A call that changes a latch, of which no other copy was sent before. If it finds nothing to change, no copy of it
/// will come: the client has the answer, or sends one that is not the first.
pub fn is_first(call: &Call<'_>) -> bool {
    match call.script.name() {
        "latch_set" => number(call, 5) == 0,
        "latch_count_down" | "latch_delete" => number(call, 3) == 0,
        _ => false,
    }
}

/// Whether those who wait are being told what became of it, and some are left.
pub fn is_telling(dump: &Dump, key: &str) -> bool {
    let Some(Content::SortedSet(tickets)) = dump.get(&format!("{key}:tickets")).map(|entry| &entry.content) else {
        return false;
    };
    is_latch(key) && tickets.iter().any(|(ticket, _)| matches!(&ticket[..], b"open" | b"gone"))
}

/// Tickets of latches that live.
pub fn living(dump: &Dump, now: Duration) -> Vec<String> {
    let ms = now.as_millis() as f64;
    let latches = dump.keys().filter_map(|key| key.strip_suffix(":tickets")).filter(|key| is_latch(key));
    let tickets = latches.flat_map(|key| Latch::read(dump, key, now).tickets);
    tickets.filter(|(_, expiry)| *expiry > ms).map(|(id, _)| id).collect()
}
