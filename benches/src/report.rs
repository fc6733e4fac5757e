//! The results: a line for each when it is known, and tables at the end.

use std::fmt::Write as _;

use crate::{Result, chart};

/// What was found, in the order in which it was.
#[derive(Debug, Default)]
pub struct Report(Vec<Case>);

#[derive(Debug)]
struct Case {
    name: String,
    metrics: Vec<(String, f64)>,
}

impl Report {
    /// Notes the value and prints its line.
    pub fn add(&mut self, case: &str, metric: &str, value: f64) {
        println!("{}", line(case, metric, value));
        let metric = (metric.to_owned(), value);
        match self.0.iter_mut().find(|known| known.name == case) {
            Some(known) => known.metrics.push(metric),
            None => self.0.push(Case { name: case.to_owned(), metrics: vec![metric] }),
        }
    }

    /// Notes what another process printed by [`line()`]. Whether it was such a line.
    pub fn add_line(&mut self, text: &str) -> bool {
        let mut words = text.split(' ').map(|word| word.split_once('='));
        let (Some(Some(("case", case))), Some(Some(("metric", metric))), Some(Some(("value", value)))) =
            (words.next(), words.next(), words.next())
        else {
            return false;
        };
        let Ok(value) = value.parse() else { return false };
        self.add(case, metric, value);
        true
    }

    /// The value of a metric that was noted.
    pub fn get(&self, case: &str, metric: &str) -> Option<f64> {
        let case = self.0.iter().find(|known| known.name == case)?;
        case.metrics.iter().find(|(name, _)| name == metric).map(|(_, value)| *value)
    }

    /// A picture of one metric of all cases that have it.
    pub fn chart(&self, metric: &str, file: &str, title: &str) -> Result<()> {
        let bars = self.0.iter().filter_map(|case| Some((case.name.clone(), self.get(&case.name, metric)?)));
        chart::bars(file, title, &bars.collect::<Vec<_>>())
    }

    /// A table for each set of metrics.
    pub fn print_tables(&self) {
        let mut left: Vec<&Case> = self.0.iter().collect();
        while let Some(first) = left.first().copied() {
            let columns = |case: &Case| case.metrics.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            let head = columns(first);
            let (same, others) = left.into_iter().partition::<Vec<_>, _>(|case| columns(case) == head);
            print!("\n{}", table(&head, &same));
            left = others;
        }
    }
}

/// A result as other programs read it.
pub fn line(case: &str, metric: &str, value: f64) -> String {
    format!("case={case} metric={metric} value={}", shown(value))
}

/// At least three digits that matter.
fn shown(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

fn table(head: &[String], cases: &[&Case]) -> String {
    let name = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let mut text = format!("{:name$}", "");
    let width = |metric: &str| metric.len().max(9);
    for metric in head {
        let _ = write!(text, "  {metric:>0$}", width(metric));
    }
    for case in cases {
        let _ = write!(text, "\n{:name$}", case.name);
        for (metric, value) in &case.metrics {
            let _ = write!(text, "  {:>1$}", shown(*value), width(metric));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut report = Report::default();
        assert!(report.add_line(&line("a", "b", 1234.5)));
        assert!(report.add_line(&line("a", "c", f64::INFINITY)));
        assert_eq!(report.get("a", "b"), Some(1234.0));
        assert_eq!(report.get("a", "c"), Some(f64::INFINITY));
        assert_eq!(report.get("a", "d"), None);
        assert!(!report.add_line("case=a metric=b"));
        assert!(!report.add_line("waits 1 2 3"));
    }
}
