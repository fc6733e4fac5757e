use super::*;
use crate::views::{Hold, Waiter};

/// A name with a holder of this label, and waiters.
fn name(name: &str, label: Option<&str>, waiters: &[&str]) -> Name {
    let hold = |label: &str| Hold {
        client: None,
        label: Some(label.to_owned()),
        access: "lock",
        permits: None,
        token: None,
        since_unix_ms: Some(0),
        remaining_ms: 1,
    };
    let waiter = |client: &&str| Waiter { client: (*client).to_owned(), label: None, access: "lock", permits: None };
    Name {
        kind: "lock",
        name: name.to_owned(),
        holds: label.map(hold).into_iter().collect(),
        waiters: waiters.len() as u64,
        queue: waiters.iter().map(waiter).collect(),
    }
}

fn names(table: &Table) -> Vec<&str> {
    table.shown(100).map(|row| row.name.as_str()).collect()
}

fn three() -> Vec<Name> {
    vec![name("a", Some("web-2"), &["x"]), name("b", None, &["x", "y"]), name("c", Some("web-1"), &[])]
}

#[test]
fn rows_are_sorted_by_each_column() {
    let mut table = Table::default();
    table.take(three(), Instant::now());
    assert_eq!((table.sort(), names(&table)), (Column::Waiting, vec!["b", "a", "c"]));
    table.reverse();
    assert_eq!(names(&table), ["c", "a", "b"]);
    table.reverse();
    for (column, order) in [
        (Column::Longest, ["a", "b", "c"]),
        (Column::Age, ["a", "c", "b"]),
        (Column::Label, ["b", "c", "a"]),
        (Column::Kind, ["a", "b", "c"]),
        (Column::Name, ["a", "b", "c"]),
        (Column::Held, ["a", "c", "b"]),
        (Column::Waiting, ["b", "a", "c"]),
    ] {
        table.sort_by_next();
        if column == Column::Age {
            // The ages differ by what passes between two looks at the clock.
            assert_eq!(names(&table)[2], "b");
            continue;
        }
        assert_eq!((table.sort(), names(&table)), (column, order.to_vec()));
    }
}

#[test]
fn a_wait_counts_from_when_it_was_first_seen() {
    let (mut table, began) = (Table::default(), Instant::now());
    let at = |seconds| began + Duration::from_secs(seconds);
    let longest = |table: &Table| table.shown(100).next().and_then(|row| row.longest).map(|longest| longest.as_secs());
    table.take(vec![name("a", None, &["x"])], at(0));
    assert_eq!(longest(&table), Some(0));
    table.take(vec![name("a", None, &["x", "y"])], at(5));
    assert_eq!(longest(&table), Some(5));
    // The first one has left.
    table.take(vec![name("a", None, &["y"])], at(7));
    assert_eq!(longest(&table), Some(2));
    table.take(vec![name("a", None, &["x"])], at(9));
    assert_eq!(longest(&table), Some(0), "it waits anew");
}

#[test]
fn a_filter_is_typed_kept_and_dropped() {
    let mut table = Table::default();
    table.take(three(), Instant::now());
    table.begin_typing();
    "web-1x".chars().for_each(|c| table.type_char(c));
    assert!(names(&table).is_empty());
    table.rub_out();
    assert_eq!(names(&table), ["c"], "it works while it is typed");
    table.end_typing(true);
    assert_eq!(names(&table), ["c"]);
    assert!(table.foot().starts_with("filter: web-1 "));
    table.begin_typing();
    table.end_typing(false);
    assert_eq!(names(&table).len(), 3);
}

#[test]
fn the_table_scrolls_and_tells_errors() {
    let mut table = Table::default();
    table.take(three(), Instant::now());
    table.scroll(1);
    assert_eq!(names(&table), ["a", "c"]);
    table.scroll(20);
    assert_eq!(names(&table), ["c"]);
    table.scroll(-20);
    assert_eq!(names(&table).len(), 3);
    // Only the rows that the filter lets through count, and those that are still there.
    table.begin_typing();
    table.scroll(2);
    table.type_char('a');
    assert_eq!(names(&table), ["a"]);
    table.end_typing(true);
    table.scroll(20);
    assert_eq!(names(&table), ["a"]);
    table.begin_typing();
    table.end_typing(false);
    table.scroll(2);
    table.take(vec![name("a", None, &[])], Instant::now());
    assert_eq!(names(&table), ["a"]);
    table.take(three(), Instant::now());
    assert_eq!(table.shown(2).count(), 2, "what does not fit is not built");
    table.failed("the server\x1b is away".to_owned());
    assert_eq!(table.foot(), "the server? is away");
    table.take(three(), Instant::now());
    assert_eq!(table.head(), "bowline top   3 names, 2 held, 3 waiting");
}
