//! `ls`: the names that are in use.

use bowline::{Client, ErrorKind};

use crate::args::look::{Kind, Ls};
use crate::exit::{Failure, OK};
use crate::show::{self, Style, clean};
use crate::views::Name;

pub(crate) async fn ls(client: &Client, Ls { start, kind, form }: &Ls) -> Result<u8, Failure> {
    let found = list(client, start, *kind).await?;
    if form.json {
        show::json(&found)?;
        return Ok(OK);
    }
    let style = Style::of_output();
    let width = found.iter().map(|name| clean(&name.name).chars().count()).max().unwrap_or(0);
    let line = |name: &Name| {
        let shown = clean(&name.name);
        let gap = " ".repeat(width - shown.chars().count());
        format!("{:<9} {}{gap}  {}", name.kind, style.bold(&shown), name.summary(style))
    };
    show::lines(&found.iter().map(line).collect::<Vec<_>>())?;
    Ok(OK)
}

/// The names, in order, with their holders and waiters.
pub(crate) async fn list(client: &Client, start: &str, kind: Option<Kind>) -> Result<Vec<Name>, Failure> {
    let names = client.names().starting_with(start);
    let mut names = match kind {
        Some(kind) => names.of_kind(kind.into()),
        None => names,
    }
    .all()
    .await?;
    names.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    let mut found = Vec::with_capacity(names.len());
    for state in client.look(&names).await {
        match state {
            Ok(state) => found.push(Name::from(&state)),
            // Keys that another program has written look like a name.
            Err(error) if error.kind() == ErrorKind::WrongType => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}
