//! Patterns of keys.

/// Whether the text matches the pattern, in which `*` stands for any bytes, `?` for one, and a backslash for the byte
/// behind it. Sets of bytes in brackets are not supported, so a bracket stands for itself.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        ([b'?', rest @ ..], [_, behind @ ..]) => matches(rest, behind),
        ([b'\\', byte, rest @ ..], [first, behind @ ..]) | ([byte, rest @ ..], [first, behind @ ..]) => {
            byte == first && matches(rest, behind)
        }
        (_, []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matches() {
        for (pattern, matching, other) in [
            ("", &[""][..], &["a"][..]),
            ("ab", &["ab"], &["", "a", "abc", "b"]),
            ("a*", &["a", "ab", "a*"], &["", "ba"]),
            ("*b*d", &["bd", "abcd", "bbdd"], &["db", "bdx"]),
            ("a?c", &["abc", "a?c"], &["ac", "abbc"]),
            (r"a\*", &["a*"], &["ab", "a", r"a\*"]),
            (r"\[\\]", &[r"[\]"], &["[]"]),
            ("[a]", &["[a]"], &["a"]),
            ("\\", &["\\"], &["", "a"]),
        ] {
            for text in matching {
                assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
            for text in other {
                assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }
}
