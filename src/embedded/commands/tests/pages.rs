//! `SCAN`.

use super::*;

#[test]
fn pages_of_keys() {
    table(&[
        ("SCAN 0 MATCH * COUNT 10", "0 []"),
        ("SET a 1", "OK"),
        ("scan 0 match * count 10", "0 [\"a\"]"),
        ("SCAN 0 MATCH b COUNT 10", "0 []"),
        ("SCAN 18446744073709551615 MATCH * COUNT 10", "0 []"),
        ("SCAN x MATCH * COUNT 10", "ERR invalid cursor"),
        ("SCAN -1 MATCH * COUNT 10", "ERR invalid cursor"),
        ("SCAN 0 MATCH * COUNT 0", SYNTAX),
        ("SCAN 0 MATCH * COUNT x", NOT_AN_INTEGER),
        ("SCAN 0 MATCH * OTHER 10", SYNTAX),
        ("SCAN 0 OTHER * COUNT 10", SYNTAX),
        ("SCAN 0", ARITY),
    ]);
    let mut database = Database::default();
    database.begin(Duration::from_millis(NOW));
    for key in 0..10 {
        run(&mut database, &format!("SET {key} 1")).unwrap();
    }
    let (mut cursor, mut seen, mut pages) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let Ok(LuaAnswer::Page { cursor: next, keys }) = run(&mut database, &format!("SCAN {cursor} MATCH * COUNT 3"))
        else {
            unreachable!()
        };
        seen.extend(keys);
        pages += 1;
        // Keys that come and go between two pages move no others.
        run(&mut database, &format!("SET new-{pages} 1")).unwrap();
        run(&mut database, &format!("DEL {}", if pages == 2 { "5" } else { "''" })).unwrap();
        cursor = String::from_utf8(next).unwrap();
        if cursor == "0" {
            break;
        }
    }
    assert!(pages > 2);
    let stayed: BTreeSet<Vec<u8>> = (0..10).filter(|key| *key != 5).map(|key| key.to_string().into_bytes()).collect();
    assert!(seen.is_superset(&stayed), "{seen:?}");
}
