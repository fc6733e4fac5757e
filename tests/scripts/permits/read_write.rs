//! Readers and writers in the queue.

use super::lab::{Permits, SPAN, writer};
use crate::lab::{Acquired, RELEASED, attempt, grant};

#[test]
fn a_reader_does_not_pass_a_waiting_writer() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::read_write();
        let (r, w, late) = (attempt(1, 1), writer(2, 1), attempt(3, 1));
        lab.hold(&[&r]);
        lab.queue(&[&w]);
        lab.listen(2);
        lab.acquire_as(mode, &late).unwrap();
        lab.assert_held(&[&r]);
        assert_eq!(lab.release(&r), RELEASED);
        lab.assert_held(&[&w]);
    }
}

#[test]
fn consecutive_readers_are_granted_together_up_to_the_next_writer() {
    let mut lab = Permits::read_write();
    let w = writer(1, 1);
    let written = lab.acquire(&w).token() + SPAN - 1;
    let readers = [attempt(2, 1), attempt(3, 1), attempt(2, 2)];
    let (next, late) = (writer(4, 1), attempt(3, 2));
    lab.queue(&readers.iter().chain([&next, &late]).collect::<Vec<_>>());
    let inboxes = [2, 3, 4].map(|client| lab.listen(client));
    assert_eq!(lab.release(&w), RELEASED);
    lab.assert_held(&readers.iter().collect::<Vec<_>>());
    lab.assert_queue(&[&next, &late]);
    lab.assert_messages(&inboxes[0], &[grant(&readers[0], written), grant(&readers[2], written)]);
    lab.assert_messages(&inboxes[1], &[grant(&readers[1], written)]);
    for reader in &readers {
        lab.assert_messages(&inboxes[2], &[]);
        assert_eq!(lab.release(reader), RELEASED);
    }
    lab.assert_held(&[&next]);
    let token = lab.token_of(&next);
    assert!(token > written);
    lab.assert_messages(&inboxes[2], &[grant(&next, token)]);
    assert_eq!(lab.release(&next), RELEASED);
    lab.assert_held(&[&late]);
    assert_eq!(lab.token_of(&late), token + SPAN - 1);
}

#[test]
fn writers_are_served_one_by_one() {
    let mut lab = Permits::read_write();
    let writers = [writer(1, 1), writer(2, 1), writer(3, 1)];
    let mut last = lab.acquire(&writers[0]).token();
    lab.queue(&[&writers[1], &writers[2]]);
    let _inboxes = [2, 3].map(|client| lab.listen(client));
    for pair in writers.windows(2) {
        assert_eq!(lab.release(&pair[0]), RELEASED);
        lab.assert_held(&[&pair[1]]);
        let token = lab.token_of(&pair[1]);
        assert!(token > last);
        last = token;
    }
}

/// A reader that cannot be told does not keep the others out, and a writer that cannot be told takes no turn.
#[test]
fn unreachable_readers_and_writers() {
    let mut lab = Permits::read_write();
    let w = writer(1, 1);
    lab.hold(&[&w]);
    let (deaf_writer, r, deaf_reader, s) = (writer(2, 1), attempt(3, 1), attempt(4, 1), attempt(3, 2));
    lab.queue(&[&deaf_writer, &r, &deaf_reader, &s]);
    lab.listen(3);
    assert_eq!(lab.release(&w), RELEASED);
    lab.assert_held(&[&r, &s]);
    lab.assert_queue(&[&deaf_writer, &deaf_reader]);
    assert!(matches!(lab.try_acquire(&attempt(5, 1)), Acquired::Busy { more: false, .. }));
}
