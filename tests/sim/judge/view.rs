//! What the server has of one name.
//!
//! The judge reads keys and arguments without the library's own spelling of them, so that a mistake there is not made
//! twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bowline::embedded::{Content, Entry};

/// Everything the server has, by key.
pub type Dump = BTreeMap<String, Entry>;

#[derive(Clone, Debug, Default)]
pub struct View {
    /// How many units there are; a lock is one.
    pub limit: u64,
    /// The expired permits too, until a script purges them.
    pub holds: Vec<Hold>,
    /// Everybody in the list, the expired too. Empty if list and sorted set differ: the next script drops both.
    pub queue: Vec<Ticket>,
    /// The counter of the tokens.
    pub fence: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Hold {
    pub id: String,
    pub units: u64,
    pub token: u64,
    /// Its last millisecond.
    pub ends: Duration,
}

impl Hold {
    pub fn lives(&self, now: Duration) -> bool {
        self.ends.as_millis() >= now.as_millis()
    }
}

impl View {
    pub fn hold(&self, id: &str) -> Option<&Hold> {
        self.holds.iter().find(|hold| hold.id == id)
    }

    /// Whether it holds or waits.
    pub fn knows(&self, id: &str) -> bool {
        self.hold(id).is_some() || self.queue.iter().any(|ticket| ticket.id == id)
    }

    pub fn free(&self, now: Duration) -> u64 {
        let used: u64 = self.holds.iter().filter(|hold| hold.lives(now)).map(|hold| hold.units).sum();
        self.limit.saturating_sub(used)
    }

    /// Whether a ticket before this one has died that there may have been no room for, as there is for this one: no
    /// call is told when that happens.
    pub fn is_behind_dead(&self, ticket: &Ticket, now: Duration) -> bool {
        let mut before = self.queue.iter().take_while(|other| other.id != ticket.id);
        before.any(|other| !other.lives(now) && other.units > ticket.units)
    }

    /// The tickets for which there is room, after all tickets before them.
    pub fn fitting(&self, now: Duration) -> impl Iterator<Item = &Ticket> {
        let free = self.free(now);
        self.queue.iter().filter(move |ticket| ticket.lives(now)).take_while(move |ticket| ticket.units <= free)
    }
}

#[derive(Clone, Debug)]
pub struct Ticket {
    pub id: String,
    pub units: u64,
    pub lease: Duration,
    pub expires_ms: f64,
}

impl Ticket {
    /// That of a lock says how many tokens it reserves.
    pub fn new(key: &str, ticket: &str, expires_ms: f64) -> Self {
        let units = if limit(key) > 1 { amount_of(ticket) } else { 1 };
        Self { id: id_of(ticket).to_owned(), units, lease: lease_of(ticket), expires_ms }
    }

    pub fn lives(&self, now: Duration) -> bool {
        self.expires_ms > now.as_millis() as f64
    }
}

/// The attempt id of a ticket.
pub fn id_of(ticket: &str) -> &str {
    ticket.split('/').next().unwrap()
}

/// The lease that the grant of a ticket will have.
pub fn lease_of(ticket: &str) -> Duration {
    Duration::from_millis(ticket.split('/').nth(1).unwrap().parse().unwrap())
}

/// The last part of a ticket: units, or how many tokens the grant of a lock's reserves.
pub fn amount_of(ticket: &str) -> u64 {
    ticket.split('/').nth(2).unwrap().parse().unwrap()
}

/// Most guards of one grant.
pub const SPAN: u64 = 32;

/// The same of a retained one.
const LARGEST_SPAN: u64 = 512;

/// How many tokens the grant of such an amount reserves for the attempt.
pub fn span(key: &str, id: &str, amount: u64) -> u64 {
    match amount {
        WRITE if id.ends_with('r') => LARGEST_SPAN,
        WRITE => SPAN,
        _ if key.contains(":lock:") => amount,
        _ => 1,
    }
}

/// The client of a attempt id.
pub fn client_of(id: &str) -> &str {
    id.split(':').next().unwrap()
}

/// Whether a key is of a name that the actors use, not of the check that a client makes when it connects.
pub fn is_used(key: &str) -> bool {
    key.contains(":{name ")
}

/// Latches hold nothing: they are judged by themselves.
pub fn is_latch(key: &str) -> bool {
    key.starts_with("bowline:latch:")
}

/// The units of a read-write lock; a writer takes them all.
pub const WRITE: u64 = 1 << 20;

/// Those of the one reader that may become the writer: two such do not fit.
pub const UPGRADABLE: u64 = WRITE / 2 + 1;

/// How many permits the semaphore of that name has.
pub fn permits(name: &str) -> u32 {
    2 + name.bytes().last().map_or(0, |last| u32::from(last % 4))
}

/// How many units there are behind that key.
pub fn limit(key: &str) -> u64 {
    match key.split([':', '{', '}']).collect::<Vec<_>>()[..] {
        ["bowline", "sem", _, name, ..] => permits(name).into(),
        ["bowline", "rw", ..] => WRITE,
        _ => 1,
    }
}

/// The names of the workload that the server has something of, by the key of who holds; latches left out.
pub fn locks(dump: &Dump) -> BTreeSet<String> {
    let lock = |key: &String| Some(key[..=key.find('}')?].to_owned());
    dump.keys().filter(|key| is_used(key) && !is_latch(key)).filter_map(lock).collect()
}

pub fn view(dump: &Dump, lock: &str) -> View {
    let in_full = in_full(dump, lock);
    let permits = in_full.as_ref().unwrap_or(dump);
    let stored = fields(permits, lock).get("limit").map(|stored| stored.parse().unwrap());
    let mut queue = queue(dump, lock).unwrap_or_default();
    let holds = if limit(lock) > 1 {
        permits_held(permits, lock)
    } else {
        // The ticket of a lock states the number of tokens to reserve.
        queue.iter_mut().for_each(|ticket| ticket.units = 1);
        dump.get(lock).and_then(hold).into_iter().collect()
    };
    let fence = match dump.get(&format!("{lock}:fence")).map(|entry| &entry.content) {
        Some(Content::String(fence)) => text(fence).parse().ok(),
        _ => None,
    };
    View { limit: stored.unwrap_or(limit(lock)), holds, queue, fence }
}

/// What both keys know of.
fn permits_held(dump: &Dump, lock: &str) -> Vec<Hold> {
    let leases = leases(dump, lock);
    let held = fields(dump, lock).into_iter().filter_map(|(id, value)| {
        let (units, stored) = value.split_once(' ')?;
        let token = first(stored);
        let ends = Duration::from_millis(*leases.get(&id)? as u64);
        Some(Hold { id, units: units.parse().unwrap(), token: token.parse().unwrap(), ends })
    });
    held.collect()
}

/// The keys of permits, if their sole hold is stored short: as the only field of a hash, whose life is its lease. They
/// say the same in full.
pub fn in_full(dump: &Dump, lock: &str) -> Option<Dump> {
    let leases = format!("{lock}:leases");
    let hash = dump.get(lock).filter(|_| limit(lock) > 1 && !dump.contains_key(&leases))?;
    let Content::Hash(fields) = &hash.content else { return None };
    let [(id, hold)] = &fields[..] else { return None };
    let ends = hash.expires.filter(|_| id.contains(&b':'))?.as_millis() as f64;
    let used = (b"used".to_vec(), hold.split(|byte| *byte == b' ').next()?.to_vec());
    let (mut full, mut set) = (hash.clone(), hash.clone());
    full.content = Content::Hash(vec![(id.clone(), hold.clone()), used]);
    set.content = Content::SortedSet(vec![(id.clone(), ends)]);
    Some([(lock.to_owned(), full), (leases, set)].into())
}

fn fields(dump: &Dump, lock: &str) -> BTreeMap<String, String> {
    match dump.get(lock).map(|entry| &entry.content) {
        Some(Content::Hash(fields)) => fields.iter().map(|(field, value)| (text(field), text(value))).collect(),
        _ => BTreeMap::new(),
    }
}

fn leases(dump: &Dump, lock: &str) -> BTreeMap<String, f64> {
    match dump.get(&format!("{lock}:leases")).map(|entry| &entry.content) {
        Some(Content::SortedSet(members)) => members.iter().map(|(id, ends)| (text(id), *ends)).collect(),
        _ => BTreeMap::new(),
    }
}

/// I5: the units held are what is written down as used, and both keys know the same holds.
pub fn conserved(dump: &Dump, lock: &str) -> Option<String> {
    let in_full = in_full(dump, lock);
    let dump = in_full.as_ref().unwrap_or(dump);
    let mut fields = fields(dump, lock);
    let used = fields.remove("used").unwrap_or_else(|| "0".to_owned());
    fields.remove("limit");
    let sum: u64 = permits_held(dump, lock).iter().map(|hold| hold.units).sum();
    let leases = leases(dump, lock);
    let same = fields.keys().eq(leases.keys());
    (used != sum.to_string() || !same).then(|| format!("I5 {lock}: {used} used, {sum} held; {fields:?}, {leases:?}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hold(entry: &Entry) -> Option<Hold> {
    let Content::Hash(fields) = &entry.content else { return None };
    let (id, token) = fields.iter().next()?;
    let ends = entry.expires.unwrap_or(Duration::MAX);
    Some(Hold { id: text(id), units: 1, token: first(&text(token)).parse().unwrap(), ends })
}

/// The token, without the longest lease that an extension has asked for.
fn first(stored: &str) -> &str {
    stored.split(' ').next().unwrap_or(stored)
}

/// `None` if list and sorted set do not hold the same tickets, each once.
pub fn queue(dump: &Dump, lock: &str) -> Option<Vec<Ticket>> {
    let list = match dump.get(&format!("{lock}:queue")).map(|entry| &entry.content) {
        Some(Content::List(list)) => &list[..],
        _ => &[],
    };
    let mut scores: HashMap<&[u8], f64> = match dump.get(&format!("{lock}:tickets")).map(|entry| &entry.content) {
        Some(Content::SortedSet(members)) => members.iter().map(|(member, score)| (&member[..], *score)).collect(),
        _ => HashMap::new(),
    };
    let mut tickets = Vec::new();
    for ticket in list {
        let expires_ms = scores.remove(&ticket[..])?;
        let ticket = text(ticket);
        let mut numbers = ticket.split('/').skip(1).map(|number| number.parse().unwrap());
        let (lease, units) = (Duration::from_millis(numbers.next().unwrap()), numbers.next().unwrap());
        tickets.push(Ticket { id: id_of(&ticket).to_owned(), units, lease, expires_ms });
    }
    scores.is_empty().then_some(tickets)
}
