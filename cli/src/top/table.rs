//! The rows of the table, their order and the filter. Pure: time comes in as an argument.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::show::clean;
use crate::views::{Name, who};

/// What the table can be sorted by, in the order of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
    Kind,
    Name,
    Held,
    #[default]
    Waiting,
    Longest,
    Age,
    Label,
}

pub(super) const COLUMNS: [(Column, &str); 7] = [
    (Column::Kind, "KIND"),
    (Column::Name, "NAME"),
    (Column::Held, "HELD"),
    (Column::Waiting, "WAITING"),
    (Column::Longest, "LONGEST"),
    (Column::Age, "AGE"),
    (Column::Label, "LABEL"),
];

/// A name, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) held: usize,
    pub(super) waiting: u64,
    /// Since one of those who wait now was first seen.
    pub(super) longest: Option<Duration>,
    /// Since the oldest hold was granted.
    pub(super) age: Option<Duration>,
    pub(super) label: String,
}

/// A waiter of a name.
type Wait = (&'static str, String, String);

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    /// When each waiter was first seen.
    waits: HashMap<Wait, Instant>,
    sort: Column,
    ascending: bool,
    filter: String,
    /// The filter as it is being typed, and the one before.
    typing: Option<String>,
    scrolled: usize,
    error: Option<String>,
}

impl Table {
    /// Takes the names that were found.
    pub(super) fn take(&mut self, names: Vec<Name>, now: Instant) {
        let mut waits = HashMap::new();
        let mut rows = Vec::with_capacity(names.len());
        for name in names {
            let mut longest = None;
            for waiter in &name.queue {
                let wait = (name.kind, name.name.clone(), waiter.client.clone());
                let since = self.waits.get(&wait).copied().unwrap_or(now);
                longest = longest.max(Some(now.saturating_duration_since(since)));
                waits.insert(wait, since);
            }
            let age = name.holds.iter().filter_map(crate::views::Hold::age).max();
            let label = name.holds.first().map(|hold| who(hold.label.as_deref(), hold.client.as_deref()));
            rows.push(Row {
                kind: name.kind,
                name: clean(&name.name),
                held: name.holds.len(),
                waiting: name.waiters,
                longest,
                age,
                label: label.unwrap_or_default(),
            });
        }
        (self.rows, self.waits, self.error) = (rows, waits, None);
        self.order();
        self.scroll(0);
    }

    pub(super) fn failed(&mut self, error: String) {
        self.error = Some(clean(&error));
    }

    fn order(&mut self) {
        // What is large is first, and what is text is in its order.
        match self.sort {
            Column::Kind => self.rows.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name))),
            Column::Name => self.rows.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind))),
            Column::Label => self.rows.sort_by(|a, b| (&a.label, &a.name).cmp(&(&b.label, &b.name))),
            Column::Held => self.rows.sort_by(|a, b| (Reverse(a.held), &a.name).cmp(&(Reverse(b.held), &b.name))),
            Column::Waiting => {
                self.rows.sort_by(|a, b| (Reverse(a.waiting), &a.name).cmp(&(Reverse(b.waiting), &b.name)));
            }
            Column::Longest => {
                self.rows.sort_by(|a, b| (Reverse(a.longest), &a.name).cmp(&(Reverse(b.longest), &b.name)));
            }
            Column::Age => self.rows.sort_by(|a, b| (Reverse(a.age), &a.name).cmp(&(Reverse(b.age), &b.name))),
        }
        if self.ascending {
            self.rows.reverse();
        }
    }

    /// The rows that the filter lets through.
    fn filtered(&self) -> impl Iterator<Item = &Row> {
        let filter = self.typing.as_ref().unwrap_or(&self.filter);
        let passes =
            move |row: &&Row| row.name.contains(filter) || row.label.contains(filter) || row.kind.contains(filter);
        self.rows.iter().filter(passes)
    }

    /// At most that many of the rows that the filter lets through, from the one that is scrolled to.
    pub(super) fn shown(&self, at_most: usize) -> impl Iterator<Item = &Row> {
        self.filtered().skip(self.scrolled).take(at_most)
    }

    pub(super) fn sort(&self) -> Column {
        self.sort
    }

    pub(super) fn sort_by_next(&mut self) {
        let at = COLUMNS.iter().position(|(column, _)| *column == self.sort).unwrap_or(0);
        self.sort = COLUMNS.get(at + 1).map_or(Column::Kind, |(column, _)| *column);
        self.order();
    }

    pub(super) fn reverse(&mut self) {
        self.ascending = !self.ascending;
        self.order();
    }

    /// Scrolls by that many rows, and never past the last one.
    pub(super) fn scroll(&mut self, rows: isize) {
        let last = self.filtered().count().saturating_sub(1);
        self.scrolled = self.scrolled.saturating_add_signed(rows).min(last);
    }

    pub(super) fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    pub(super) fn begin_typing(&mut self) {
        (self.typing, self.scrolled) = (Some(String::new()), 0);
    }

    pub(super) fn type_char(&mut self, c: char) {
        self.typing.get_or_insert_default().push(c);
        self.scroll(0);
    }

    pub(super) fn rub_out(&mut self) {
        self.typing.get_or_insert_default().pop();
    }

    /// Keeps what was typed, or goes back to all rows.
    pub(super) fn end_typing(&mut self, keep: bool) {
        self.filter = self.typing.take().filter(|_| keep).unwrap_or_default();
    }

    /// The line below the table.
    pub(super) fn foot(&self) -> String {
        match (&self.error, &self.typing) {
            (Some(error), _) => error.clone(),
            (None, Some(typed)) => format!("filter: {typed}_"),
            (None, None) if !self.filter.is_empty() => {
                format!("filter: {}   / another   s sort   r reverse   q end", self.filter)
            }
            (None, None) => "s sort   r reverse   / filter   q end".to_owned(),
        }
    }

    /// The line above the table.
    pub(super) fn head(&self) -> String {
        let waiting: u64 = self.rows.iter().map(|row| row.waiting).sum();
        let held = self.rows.iter().filter(|row| row.held > 0).count();
        format!("bowline top   {} names, {held} held, {waiting} waiting", self.rows.len())
    }
}

#[cfg(test)]
mod tests;
