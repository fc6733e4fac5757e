//! Lists, by table.

use super::{NOT_AN_INTEGER, WRONG_TYPE, table};

#[test]
fn lists() {
    table(&[
        ("RPUSH l a b a c a", "5"),
        ("LINDEX l 0", "'a'"),
        ("LINDEX l -2", "'c'"),
        ("LINDEX l 5", "nil"),
        ("LINDEX l -6", "nil"),
        ("LINDEX l x", NOT_AN_INTEGER),
        ("LINDEX m x", "nil"),
        ("LREM l 1 a", "1"),
        ("LINDEX l 0", "'b'"),
        ("LREM l -1 a", "1"),
        ("LINDEX l -1", "'c'"),
        ("LREM l x a", NOT_AN_INTEGER),
        ("LREM l 0 a", "1"),
        ("LREM l 0 a", "0"),
        ("LLEN l", "2"),
        ("LREM m 1 a", "0"),
        ("PEXPIRE l 100", "1"),
        ("LREM l 9 b", "1"),
        ("LREM l 9 c", "1"),
        ("EXISTS l", "0"),
        ("RPUSH l a", "1"),
        ("PTTL l", "-1"),
        ("LPUSH l b c", "3"),
        ("LINDEX l 0", "'c'"),
        ("LINDEX l -1", "'a'"),
        ("LPUSH n d", "1"),
        ("LLEN m", "0"),
        ("HGET l a", WRONG_TYPE),
    ]);
}
