//! `client_listeners`.

use crate::lab::{Lab, channel, lock};

#[test]
fn the_listeners_of_an_inbox_are_counted_and_nothing_is_changed() {
    let mut lab = Lab::new();
    let count = |lab: &mut Lab, n| {
        let request = lock("scratch").listeners(&channel(n));
        let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
        lab.run(request.script.name(), &keys, &request.words(), false, |words| words.next()).unwrap()
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
