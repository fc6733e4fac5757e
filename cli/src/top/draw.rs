//! Draws the table.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Cell, Paragraph, Row, Table as Grid};

use super::table::{COLUMNS, Table};
use crate::show::time;

pub(super) fn draw(frame: &mut Frame<'_>, table: &Table) {
    let areas = Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]);
    let [head, body, foot] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(table.head()).style(Style::new().add_modifier(Modifier::BOLD)), head);
    let titles = COLUMNS.map(|(column, title)| {
        let style = Style::new().add_modifier(Modifier::BOLD);
        let is_sorted = column == table.sort();
        Cell::new(title).style(if is_sorted { style.add_modifier(Modifier::REVERSED) } else { style })
    });
    let text = |time_: Option<Duration>| time_.map_or_else(String::new, time);
    let rows = table.shown().map(|row| {
        let cells = [
            row.kind.to_owned(),
            row.name.clone(),
            row.held.to_string(),
            row.waiting.to_string(),
            text(row.longest),
            text(row.age),
            row.label.clone(),
        ];
        Row::new(cells).style(if row.waiting > 0 { colored(Color::Yellow) } else { Style::new() })
    });
    let widths = [
        Constraint::Length(9),
        Constraint::Fill(2),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    frame.render_widget(Grid::new(rows, widths).header(Row::new(titles)), body);
    frame.render_widget(Paragraph::new(table.foot()).style(Style::new().add_modifier(Modifier::DIM)), foot);
}

/// A colour, unless nobody wants any: <https://no-color.org>.
fn colored(color: Color) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if no_color { Style::new() } else { Style::new().fg(color) }
}
