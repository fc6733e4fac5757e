use super::*;
use crate::context::tests::setup;
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::protocol::kind::Kind;
use crate::protocol::limits::{READ, WRITE};

/// The handles of one client.
struct Handles(Arc<HoldSource>);

impl Handles {
    fn new() -> Self {
        Self(HoldSource::new(setup().context))
    }

    fn part(&self, kind: Kind, name: &str, amount: u32) -> Part {
        Part { primitive: Primitive::new(&self.0, kind, name), amount }
    }

    fn lock(&self, name: &str) -> Part {
        self.part(Kind::Lock, name, 1)
    }

    fn permits(&self, name: &str, limit: u32, amount: u32) -> Part {
        self.part(Kind::Semaphore { limit }, name, amount)
    }
}

fn plan(parts: &[&Part]) -> Result<Vec<Part>> {
    let parts: Vec<Part> = parts.iter().map(|part| (*part).clone()).collect();
    ordered(&Options::of_several(&parts, "acquire"))
}

/// The key and the amount of each part.
fn shown(parts: &[&Part]) -> Vec<(String, u32)> {
    let key = |part: &Part| part.primitive.keys("test").unwrap().main().to_owned();
    plan(parts).unwrap().iter().map(|part| (key(part), part.amount)).collect()
}

#[test]
fn the_order_of_the_caller_does_not_matter() {
    let handles = Handles::new();
    let (sem, rw) = (handles.permits("a", 3, 2), handles.part(Kind::ReadWrite, "a", WRITE));
    let (b, a, ab) = (handles.lock("b"), handles.lock("a"), handles.lock("a:b"));
    let expected = [("lock:{a:b}", 1), ("lock:{a}", 1), ("lock:{b}", 1), ("rw:{a}", WRITE), ("sem:{a}", 2)]
        .map(|(key, amount)| (format!("bowline:{key}"), amount));
    let mut parts = [&sem, &rw, &b, &a, &ab];
    for _ in 0..parts.len() {
        parts.rotate_left(1);
        assert_eq!(shown(&parts), expected);
        let mut reversed = parts;
        reversed.reverse();
        assert_eq!(shown(&reversed), expected);
    }
}

#[test]
fn what_is_named_twice_is_one_hold_and_permits_add_up() {
    let handles = Handles::new();
    let reads = handles.part(Kind::ReadWrite, "a", READ);
    let (lock, two, three) = (handles.lock("a"), handles.permits("a", 5, 2), handles.permits("a", 5, 3));
    let shown = shown(&[&two, &reads, &lock, &reads, &three, &lock]);
    let expected = [("lock:{a}", 1), ("rw:{a}", READ), ("sem:{a}", 5)];
    assert_eq!(shown, expected.map(|(key, amount)| (format!("bowline:{key}"), amount)));
}

#[test]
fn what_would_wait_for_itself_is_refused() {
    let handles = Handles::new();
    let (read, write) = (handles.part(Kind::ReadWrite, "a", READ), handles.part(Kind::ReadWrite, "a", WRITE));
    for parts in [[&read, &write], [&write, &read]] {
        let error = plan(&parts).unwrap_err();
        assert_eq!((error.kind(), error.name()), (ErrorKind::WouldDeadlock, Some("a")));
    }
    // One semaphore cannot have two limits.
    let error = plan(&[&handles.permits("s", 2, 1), &handles.permits("s", 3, 1)]).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("s")));
    assert_eq!(plan(&[]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(plan(&[&handles.lock("a"), &handles.lock("")]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// All processes would have to tell in the same way whether two clients use the same server, and none can.
#[test]
fn equal_names_of_different_clients_stay_in_the_order_of_the_caller() {
    let (one, other) = (Handles::new(), Handles::new());
    let order = |parts: &[&Part]| -> Vec<(bool, String)> {
        let first = |part: &Part| Arc::ptr_eq(&part.primitive.source, &one.0);
        let name = |part: &Part| part.primitive.name().unwrap().to_owned();
        plan(parts).unwrap().iter().map(|part| (first(part), name(part))).collect()
    };
    let (a, b) = ((one.lock("a"), one.lock("b")), (other.lock("a"), other.lock("b")));
    let named = |first: bool, name: &str| (first, name.to_owned());
    assert_eq!(
        order(&[&b.1, &a.0, &b.0, &a.1, &a.0]),
        [named(true, "a"), named(false, "a"), named(false, "b"), named(true, "b")]
    );
}
