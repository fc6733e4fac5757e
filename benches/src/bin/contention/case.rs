//! What is run: how many want the lock, how they ask for it, how long they keep it.

use std::time::Duration;

use bowline_benches::Result;

/// How many tasks in how many processes, and whether they keep the lock for a millisecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) processes: usize,
    pub(crate) tasks: usize,
    pub(crate) section: Duration,
}

pub(crate) const SHAPES: [Shape; 8] = [
    Shape::empty(1, 8),
    Shape::empty(1, 64),
    Shape::empty(1, 1_000),
    Shape::empty(8, 8),
    Shape::millisecond(1, 8),
    Shape::millisecond(1, 64),
    Shape::millisecond(1, 1_000),
    Shape::millisecond(8, 8),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fair,
    NonFair,
    /// As the non-fair ones, for the only permit of a semaphore.
    Permits,
    /// As the non-fair ones, to write under a read-write lock.
    Writers,
    /// The tasks hand over among themselves and run the scripts of a free lock: no queue.
    Baseline,
    /// As the baseline, with scripts that do nothing, over a bare connection of redis-rs.
    Bare,
    /// The floor of a cohort: a mutex of tokio, and no server.
    Local,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Fair, Self::NonFair, Self::Permits, Self::Writers, Self::Baseline, Self::Bare, Self::Local];

    fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::NonFair => "nonfair",
            Self::Permits => "permits",
            Self::Writers => "writers",
            Self::Baseline => "baseline",
            Self::Bare => "bare",
            Self::Local => "local",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
}

impl Shape {
    const fn empty(processes: usize, tasks: usize) -> Self {
        Self { processes, tasks, section: Duration::ZERO }
    }

    const fn millisecond(processes: usize, tasks: usize) -> Self {
        Self { processes, tasks, section: Duration::from_millis(1) }
    }

    pub(crate) fn name(self) -> String {
        let section = if self.section.is_zero() { "empty" } else { "1ms" };
        format!("{}x{}-{section}", self.processes, self.tasks)
    }

    /// A baseline and floors need tasks that can hand over among themselves. All kinds of cohorts are compared there.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        let is_alone = (self.processes, self.tasks) == (1, 64);
        Kind::ALL.into_iter().filter(move |kind| is_alone || matches!(kind, Kind::Fair | Kind::NonFair))
    }

    pub(crate) fn with(self, kind: Kind) -> Case {
        Case { shape: self, kind }
    }
}

impl Case {
    pub(crate) fn name(self) -> String {
        format!("{}-{}", self.shape.name(), self.kind.name())
    }

    /// As the arguments of a child.
    pub(crate) fn task(self, time: Duration, url: &str) -> Vec<String> {
        let Shape { tasks, section, .. } = self.shape;
        let numbers = [tasks as u128, section.as_millis(), time.as_millis()].map(|number| number.to_string());
        [url.to_owned(), self.kind.name().to_owned()].into_iter().chain(numbers).collect()
    }

    /// From the arguments of a child, with the time and the server's address.
    pub(crate) fn from_task(task: &[String]) -> Result<(Self, Duration, String)> {
        let [url, kind, tasks, section, time] = task else { return Err(format!("not a task: {task:?}").into()) };
        let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or("not a kind")?;
        let section = Duration::from_millis(section.parse()?);
        let shape = Shape { processes: 1, tasks: tasks.parse()?, section };
        Ok((shape.with(kind), Duration::from_millis(time.parse()?), url.clone()))
    }
}
