//! `client_listeners`.

use crate::lab::{INBOX, Lab, attempt};

#[test]
fn the_listeners_of_an_inbox_are_counted_and_nothing_is_changed() {
    let mut lab = Lab::new();
    let client = |n| attempt(n, 1).id.split_once(':').unwrap().0.to_owned();
    let count = |lab: &mut Lab, n| {
        let inbox = format!("{INBOX}{}", client(n));
        lab.run("client_listeners", &["p:scratch".to_owned()], &[inbox], false, |words| words.next()).unwrap()
    };
    assert_eq!(count(&mut lab, 1), 0);
    let _one = lab.listen(1);
    assert_eq!((count(&mut lab, 1), count(&mut lab, 2)), (1, 0));
    let _two = lab.listen(1);
    assert_eq!(count(&mut lab, 1), 2);
    // A pattern subscriber is not a client.
    let _all = lab.listen_by_pattern(2);
    assert_eq!((count(&mut lab, 1), count(&mut lab, 2)), (2, 0));
    lab.assert_free();
}
