//! What the checker of histories accepts, and the planted mistakes that it finds.

use bowline_model::history::{Hold, check};

fn hold(asked: u64, granted: u64, token: u64, ended: Option<(u64, u64)>) -> Hold {
    Hold { asked, granted, token, ended }
}

/// One after the other, each of them asked for long before it is granted, as by waiters.
fn handed_over(count: u64) -> Vec<Hold> {
    (0..count)
        .map(|n| hold((10 * n).saturating_sub(200), 10 * n + 1, 100 + n, Some((10 * n + 5, 10 * n + 6))))
        .collect()
}

#[test]
fn histories_of_a_lock_are_linearizable() {
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&handed_over(200)), Ok(()));
    // Handed over at the same moment.
    assert_eq!(check(&[hold(0, 1, 5, Some((4, 4))), hold(2, 4, 6, Some((5, 5)))]), Ok(()));
    // A lease ran out at a time that its owner did not see, and the owner of another hold died.
    assert_eq!(check(&[hold(0, 1, 5, Some((2, 90))), hold(3, 20, 6, None), hold(30, 40, 9, Some((50, 50)))]), Ok(()));
}

#[test]
fn a_planted_overlap_is_found() {
    let holds = [hold(0, 1, 5, Some((8, 9))), hold(0, 6, 6, Some((20, 20)))];
    assert!(check(&holds).is_err());
    for at in [0, 7, 8, 100, 198] {
        let mut holds = handed_over(200);
        let next = holds[at + 1].granted;
        holds[at].ended = Some((next + 1, next + 2));
        assert!(check(&holds).is_err(), "at {at}");
    }
}

#[test]
fn a_planted_stale_token_is_found() {
    // The second hold was asked for when the first one was over, and has a smaller token.
    assert!(check(&[hold(0, 1, 6, Some((2, 2))), hold(3, 4, 5, Some((5, 5)))]).is_err());
    for (at, token) in [(1, 100), (50, 120), (199, 0), (150, 249)] {
        let mut holds = handed_over(200);
        holds[at].token = token;
        assert!(check(&holds).is_err(), "at {at}");
    }
}
