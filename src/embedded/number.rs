//! Numbers as Redis reads and writes them.

use std::str::from_utf8;

/// Accepts the canonical spelling only: no plus sign, no leading zero, no space.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        b"0" => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if canonical { from_utf8(text).ok()?.parse().ok() } else { None }
}

/// A score. It may be spelled as infinite, but a number that overflows or underflows is refused.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    let text = from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    let spelled = text.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    let vanished = value == 0.0 && text.bytes().take_while(|b| !b.eq_ignore_ascii_case(&b'e')).any(|b| b > b'0');
    if value.is_nan() || value.is_infinite() && !spelled || vanished { None } else { Some(value) }
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    exclusive: bool,
}

impl Bound {
    /// A leading `(` excludes the number itself. As in the C library, an empty text is zero and leading space is
    /// skipped.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (text, exclusive) = match text.strip_prefix(b"(") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let value = if text.is_empty() { 0.0 } else { from_utf8(text.trim_ascii_start()).ok()?.parse().ok()? };
        (!f64::is_nan(value)).then_some(Self { value, exclusive })
    }

    pub(super) fn admits_above(self, score: f64) -> bool {
        score > self.value || !self.exclusive && score == self.value
    }

    pub(super) fn admits_below(self, score: f64) -> bool {
        score < self.value || !self.exclusive && score == self.value
    }
}

/// Spells a number of Lua that is an argument of a command, and that most servers spell as `text`.
pub(super) fn spelled(text: String) -> String {
    if cfg!(test) { awkward(text) } else { text }
}

/// The spelling of Redis 7.2.0 to 7.2.4: a number that ends with eight zeros has an exponent, and is no integer to a
/// command. Scripts have to work there, too.
fn awkward(text: String) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", &*text), |digits| ("-", digits));
    let significant = digits.trim_end_matches('0');
    let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit());
    match significant.split_at_checked(1) {
        Some((first, rest)) if is_whole && digits.len() - significant.len() >= 8 => {
            let point = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{point}{rest}e+{}", digits.len() - 1)
        }
        _ => text,
    }
}

/// Formats as C's `%.17g` does. Redis formats scores that way, and most numbers of Lua.
pub(super) fn general(number: f64) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let scientific = format!("{number:.16e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..17) => trim(&format!("{number:.*}", usize::try_from(16 - exponent).unwrap_or(0))),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
            ("1e3", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(integer(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn scores_are_doubles_in_range() {
        for (text, value) in [
            ("1", Some(1.0)),
            ("+1.5", Some(1.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("0e9", Some(0.0)),
            ("1e999", None),
            ("1e-999", None),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("x", None),
            ("(1", None),
        ] {
            assert_eq!(double(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(double(b"\xff"), None);
    }

    #[test]
    fn bounds_of_ranges() {
        let bound = |text: &str| Bound::parse(text.as_bytes()).map(|bound| (bound.value, bound.exclusive));
        assert_eq!(bound("1"), Some((1.0, false)));
        assert_eq!(bound("(1"), Some((1.0, true)));
        assert_eq!(bound("+inf"), Some((f64::INFINITY, false)));
        assert_eq!(bound("("), Some((0.0, true)));
        assert_eq!(bound(""), Some((0.0, false)));
        assert_eq!(bound(" 1"), Some((1.0, false)));
        assert_eq!(bound(" "), None);
        assert_eq!(bound("1 "), None);
        assert_eq!(bound("nan"), None);
        assert_eq!(bound("x"), None);
        assert_eq!(bound("((1"), None);
    }

    #[test]
    fn redis_7_2_spells_a_number_that_ends_with_eight_zeros_with_an_exponent() {
        for (number, text) in [
            (0.0, "0"),
            (10_000_000.0, "10000000"),
            (100_000_000.0, "1e+8"),
            (-100_000_000.0, "-1e+8"),
            (120_000_000.0, "120000000"),
            (1_200_000_000.0, "1.2e+9"),
            (1_795_956_600_000_000.0, "1.7959566e+15"),
            (100_000_000.5, "100000000.5"),
            (1e17, "1e+17"),
        ] {
            assert_eq!(awkward(general(number)), text);
        }
    }

    #[test]
    fn general_is_that_of_c() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (30_000.0, "30000"),
            (1.5, "1.5"),
            (0.1, "0.10000000000000001"),
            (1_767_225_600_000.0, "1767225600000"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (0.0001, "0.0001"),
            (0.000_01, "1.0000000000000001e-05"),
            (-2.25, "-2.25"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}
