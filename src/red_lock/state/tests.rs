use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::error::ErrorKind;

fn master(client: u128, token: Option<u64>, label: Option<&str>) -> MasterState {
    let vote = token.map(|token| HolderState {
        client: Some(Uuid::from_u128(client)),
        label: label.map(str::to_owned),
        token: Token::new(token),
        remaining: Duration::from_secs(1),
        idle: None,
    });
    MasterState { vote, turn: None, waiters: 0, counts: true, error: None }
}

fn silent() -> MasterState {
    MasterState { error: Some(Error::new(ErrorKind::Unavailable, "inspect")), ..master(0, None, None) }
}

fn uncounted(master: MasterState) -> MasterState {
    MasterState { counts: false, ..master }
}

#[test]
fn who_holds_by_a_majority() {
    let state = |masters: [MasterState; 3]| RedLockState { masters: masters.into() };
    let vote = |client, token, label| master(client, Some(token), label);
    let free = || master(0, None, None);
    // The masters; the token and the client of the holder; whether there can be none.
    let cases = [
        ([vote(1, 7, None), vote(2, 7, None), vote(3, 7, None)], Some((7, 1)), false),
        ([free(), vote(2, 7, None), vote(3, 7, None)], Some((7, 2)), false),
        ([silent(), vote(2, 7, None), vote(3, 7, None)], Some((7, 2)), false),
        ([vote(1, 7, None), silent(), free()], None, false),
        ([vote(1, 7, None), uncounted(vote(2, 7, None)), free()], None, false),
        ([vote(1, 7, None), vote(2, 8, None), free()], None, true),
        ([vote(1, 7, None), vote(2, 8, None), silent()], None, false),
        // A master that took the lock has not accepted the token.
        ([vote(1, 7, None), vote(2, 0, None), free()], None, true),
        ([free(), free(), silent()], None, true),
        ([free(), silent(), silent()], None, false),
        ([free(), free(), free()], None, true),
    ];
    for (masters, held, is_free) in cases {
        let state = state(masters);
        let holder = state.holder().map(|holder| (holder.token.get(), holder.client.unwrap().as_u128()));
        assert_eq!((holder, state.is_free()), (held, is_free), "{state:?}");
    }
    let labelled = state([vote(1, 7, None), vote(2, 7, Some("b")), vote(3, 7, Some("c"))]).holder().unwrap();
    assert_eq!((labelled.client, labelled.label.as_deref()), (Some(Uuid::from_u128(1)), Some("b")));
}

#[cfg(feature = "serde")]
#[test]
fn an_error_is_written_with_its_causes() {
    use crate::connection::ConnectionError;

    let error = Error::new(ErrorKind::Refused, "inspect").with_source(ConnectionError::refused("LOADING for a while"));
    let state = MasterState { vote: None, turn: None, waiters: 0, counts: false, error: Some(error) };
    let written = toml::to_string(&state).unwrap();
    assert!(written.contains("error = \"inspect: the server refused: LOADING for a while\""), "{written}");
}
