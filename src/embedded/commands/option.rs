//! Options of commands, such as `LIMIT`.

/// Options are spelled in upper or lower case.
pub(super) fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}
