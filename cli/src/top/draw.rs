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
    // One line is that of the titles.
    let rows = table.shown(usize::from(body.height.saturating_sub(1))).map(|row| {
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::views::Name;

    fn names(count: usize) -> Vec<Name> {
        let name =
            |n| Name { kind: "lock", name: format!("n{n:05}"), holds: Vec::new(), waiters: 0, queue: Vec::new() };
        (0..count).map(name).collect()
    }

    #[test]
    fn the_rows_fill_the_screen_and_no_more() {
        let mut table = Table::default();
        table.take(names(10_000), Instant::now());
        let mut terminal = Terminal::new(TestBackend::new(60, 7)).unwrap();
        let mut shown = |table: &Table| {
            terminal.draw(|frame| draw(frame, table)).unwrap();
            let text = terminal.backend().to_string();
            let words =
                text.split([' ', '"']).filter(|word| word.strip_prefix('n').is_some_and(|n| n.parse::<u32>().is_ok()));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(shown(&table), ["n00000", "n00001", "n00002", "n00003"]);
        table.scroll(9_998);
        assert_eq!(shown(&table), ["n09998", "n09999"]);
    }
}
