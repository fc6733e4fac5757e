//! What many processes wrote down, and whether it is as the lock promises.

use std::collections::{BTreeMap, BTreeSet};

use bowline_model::history::{self, Hold};

/// Holds of one lock, from the histories of several processes: no two overlap, tokens grow in the order of the grants,
/// and every task was served each time it asked. Returns how many holds there were.
pub(crate) fn check(histories: &[String]) -> Result<usize, String> {
    // By token, the start and the end of each hold.
    let mut holds: BTreeMap<u64, (u64, Option<u64>)> = BTreeMap::new();
    let (mut asked, mut served) = (BTreeMap::new(), BTreeMap::new());
    let (mut invoked, mut past): (BTreeMap<(usize, u64), u64>, BTreeMap<u64, Hold>) = Default::default();
    for (process, history) in histories.iter().enumerate() {
        for line in history.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let &[event, at, task, token] = &*words else { return Err(format!("{line:?}")) };
            let [at, task, token] = [at, task, token].map(|word| word.parse::<u64>().unwrap());
            match event {
                "invoke" => {
                    invoked.insert((process, task), at);
                    *asked.entry((process, task)).or_insert(0) += 1;
                }
                "grant" => {
                    *served.entry((process, task)).or_insert(0) += 1;
                    if holds.insert(token, (at, None)).is_some() {
                        return Err(format!("token {token} twice"));
                    }
                    let asked = invoked.get(&(process, task)).copied().unwrap_or(at);
                    past.insert(token, Hold { asked, granted: at, token, ended: None });
                }
                "release" => {
                    holds.get_mut(&token).ok_or_else(|| format!("{line:?}: not granted"))?.1 = Some(at);
                    past.entry(token).and_modify(|hold| hold.ended = Some((at, at)));
                }
                _ => return Err(format!("{line:?}")),
            }
        }
    }
    if asked != served {
        return Err(format!("asked {asked:?}, served {served:?}"));
    }
    let tasks: BTreeSet<u64> = served.keys().map(|(_, task)| *task).collect();
    if served.len() != histories.len() * tasks.len() {
        return Err(format!("not everybody was served: {:?}", served.keys()));
    }
    let holds: Vec<(u64, (u64, Option<u64>))> = holds.into_iter().collect();
    for pair in holds.windows(2) {
        let [(token, (_, end)), (next, (begin, _))] = pair else { unreachable!() };
        if end.is_none_or(|end| end > *begin) {
            return Err(format!("{token} was held until {end:?}, {next} from {begin}"));
        }
    }
    history::check(&past.into_values().collect::<Vec<_>>())?;
    Ok(holds.len())
}

#[test]
fn the_checker_finds_what_it_looks_for() {
    let check = |histories: &[&str]| check(&histories.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let first = "invoke 1 0 0\ngrant 2 0 10\nrelease 3 0 10\n";
    assert_eq!(check(&[first, "invoke 1 0 0\ngrant 3 0 11\nrelease 4 0 11\n"]), Ok(2));
    for (second, what) in [
        ("invoke 1 0 0\ngrant 2 0 11\nrelease 4 0 11\n", "an overlap"),
        ("invoke 1 0 0\ngrant 3 0 9\nrelease 4 0 9\n", "a smaller token later"),
        ("invoke 1 0 0\ngrant 3 0 10\nrelease 4 0 10\n", "a token twice"),
        ("invoke 1 0 0\n", "a task is not served"),
        ("", "a process not served"),
        ("invoke 1 0 0\ngrant 3 0 11\nrelease 4 0 11\ninvoke 5 0 0\n", "a task is not served again"),
        ("invoke 1 0 0\nrelease 4 0 11\n", "a release without a grant"),
        ("rubbish\n", "rubbish"),
    ] {
        assert!(check(&[first, second]).is_err(), "not found: {what}");
    }
}
