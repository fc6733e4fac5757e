//! Known mistakes, made on purpose one at a time: each must be caught, by the check that is there for it.
//!
//! A mistake in a script is a patch of the script that the simulated server runs; one in Rust is a `bowline::Mutant`.
//! `BOWLINE_SIM_MUTANT=<name>` makes one of them and prints the history of the run that catches it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bowline::Switch;

use crate::scenes::{self, SCENES};
use crate::scripts::Scripts;
use crate::stage::play;
use crate::world::run_with;

mod table;

use table::{MUTANTS, Mistake, Place, Row};

impl Row {
    /// What a run or scene says about the mistake, and its history.
    fn make(&self, seed: u64, scripts: Scripts) -> (Option<String>, String) {
        let _on = match self.mistake {
            Mistake::Lua(_) => None,
            Mistake::Rust(mutant) => Some(Switch::on(mutant)),
        };
        match self.place {
            Place::Run(_, workload, faults) => {
                let report = run_with(seed, workload, faults, scripts);
                (report.violation, report.history)
            }
            Place::Scene(name) => {
                let (_, scene) = SCENES.iter().find(|(scene, _)| *scene == name).expect("a scene of that name");
                let (outcome, history) = play(seed, *scene, scripts);
                (outcome.err(), history)
            }
        }
    }

    /// What catches it, with the history and the seed.
    fn hunt(&self) -> Option<(String, String, u64)> {
        let scripts = match self.mistake {
            Mistake::Lua(patches) => {
                Scripts::patched(patches).unwrap_or_else(|why| panic!("{} does not fit: {why}", self.name))
            }
            Mistake::Rust(_) => Scripts::default(),
        };
        (0..self.seeds()).find_map(|seed| {
            let made = catch_unwind(AssertUnwindSafe(|| self.make(seed, scripts.clone())));
            let (found, history) = made.unwrap_or_else(|_| (Some("a panic".to_owned()), String::new()));
            Some((found?, history, seed))
        })
    }

    /// Without a mutant they find nothing, so what they find is the mutant's. A run has more of them than its control
    /// has by default: `token_not_compared` needs a ticket that a new master grants once more, which is seldom, and is
    /// found after a few hundred. The others are found sooner, and end then.
    fn seeds(&self) -> u64 {
        match self.place {
            Place::Run(..) => 1500,
            Place::Scene(name) => scenes::seeds_of(name),
        }
    }

    fn place(&self) -> &'static str {
        match self.place {
            Place::Run(name, ..) | Place::Scene(name) => name,
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "hunted without debug assertions, by scripts/test")]
fn mutants() {
    let only = std::env::var("BOWLINE_SIM_MUTANT").ok();
    let mut wrong = Vec::new();
    println!("{:<36}{:<20}{:<8}by", "mutant", "caught in", "seeds");
    for row in MUTANTS.iter().filter(|row| only.as_ref().is_none_or(|only| only == row.name)) {
        let caught = row.hunt();
        let (seeds, by) = match &caught {
            Some((by, _, seed)) => ((seed + 1).to_string(), by.as_str()),
            None => ("-".to_owned(), "NOTHING"),
        };
        if let (Some(_), Some((_, history, _))) = (&only, &caught) {
            println!("{history}");
        }
        println!("{:<36}{:<20}{seeds:<8}{by}", row.name, row.place());
        let right =
            |by: &str| row.caught_by.iter().any(|check| by.strip_prefix(check).is_some_and(|by| by.starts_with(' ')));
        if !caught.is_some_and(|(by, ..)| right(&by)) {
            wrong.push(row.name);
        }
    }
    assert_eq!(wrong, [""; 0], "not caught, or not by the check that is there for it");
}

#[test]
fn the_table_in_the_documentation_is_the_same() {
    let documented = include_str!("../../docs/simulation.md").lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: Vec<Vec<&str>> = documented.map(|line| line.split(" | ").collect()).collect();
    for row in MUTANTS {
        let line = documented.iter().find(|cells| cells[0].strip_suffix('`') == Some(row.name));
        let line = line.unwrap_or_else(|| panic!("{} is not documented", row.name));
        let caught_by = format!("{} |", row.caught_by.join(", "));
        assert_eq!(line[2..], [row.place(), &caught_by], "{}", row.name);
    }
}

#[test]
fn every_patch_fits() {
    for row in MUTANTS {
        if let Mistake::Lua(patches) = row.mistake {
            assert_eq!(Scripts::patched(patches).err(), None, "{}", row.name);
        }
    }
}
