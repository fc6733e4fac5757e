//! What the server has of one name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bowline::embedded::{Content, Entry};

/// Everything the server has, by key.
pub type Dump = BTreeMap<String, Entry>;

#[derive(Clone, Debug, Default)]
pub struct View {
    pub hold: Option<Hold>,
    /// Everybody in the list, the expired too. Empty if list and sorted set differ: the next script drops both.
    pub queue: Vec<Ticket>,
}

#[derive(Clone, Debug)]
pub struct Hold {
    pub id: String,
    pub token: u64,
    pub ends: Duration,
}

#[derive(Clone, Debug)]
pub struct Ticket {
    pub id: String,
    pub lease: Duration,
    pub expires_ms: f64,
}

impl Ticket {
    pub fn lives(&self, now: Duration) -> bool {
        self.expires_ms > now.as_millis() as f64
    }
}

/// The wire id of a ticket.
pub fn id_of(ticket: &str) -> &str {
    ticket.split('/').next().unwrap()
}

/// The client of a wire id.
pub fn client_of(id: &str) -> &str {
    id.split(':').next().unwrap()
}

/// Whether a key is of a name that the actors use, not of the check that a client makes when it connects.
pub fn is_used(key: &str) -> bool {
    key.starts_with("bowline:lock:{name ")
}

/// The names of the workload that the server has something of, by the key of the lock.
pub fn locks(dump: &Dump) -> BTreeSet<String> {
    let lock = |key: &String| Some(key[..=key.find('}')?].to_owned());
    dump.keys().filter(|key| is_used(key)).filter_map(lock).collect()
}

pub fn view(dump: &Dump, lock: &str) -> View {
    View { hold: dump.get(lock).and_then(hold), queue: queue(dump, lock).unwrap_or_default() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hold(entry: &Entry) -> Option<Hold> {
    let Content::Hash(fields) = &entry.content else { return None };
    let id = fields.iter().find(|(field, _)| field != b"token")?;
    let token = fields.iter().find(|(field, _)| field == b"token")?;
    Some(Hold { id: text(&id.0), token: text(&token.1).parse().unwrap(), ends: entry.expires.unwrap_or(Duration::MAX) })
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
        let lease = ticket.split('/').nth(1).unwrap().parse().unwrap();
        tickets.push(Ticket { id: id_of(&ticket).to_owned(), lease: Duration::from_millis(lease), expires_ms });
    }
    scores.is_empty().then_some(tickets)
}
