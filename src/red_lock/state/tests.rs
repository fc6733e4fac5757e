use super::*;
use crate::connection::ConnectionError;
use crate::error::ErrorKind;

#[test]
fn an_error_is_written_with_its_causes() {
    let error = Error::new(ErrorKind::Refused, "inspect").with_source(ConnectionError::refused("LOADING for a while"));
    let state = MasterState { vote: None, turn: None, waiters: 0, counts: false, error: Some(error) };
    let written = toml::to_string(&state).unwrap();
    assert!(written.contains("error = \"inspect: the server refused: LOADING for a while\""), "{written}");
}
