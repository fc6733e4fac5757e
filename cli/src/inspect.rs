//! `inspect`: who holds a name and who waits for it.

use bowline::{Client, NameInUse, PrimitiveKind};

use crate::args::look::{Inspect, Kind};
use crate::exit::{Failure, NO, OK};
use crate::show::{self, Style};
use crate::views::Name;

/// The kinds that somebody can hold or wait for.
const KINDS: [PrimitiveKind; 9] = [
    PrimitiveKind::Lock,
    PrimitiveKind::RwLock,
    PrimitiveKind::Semaphore,
    PrimitiveKind::Latch,
    PrimitiveKind::Barrier,
    PrimitiveKind::DoubleBarrier,
    PrimitiveKind::Once,
    PrimitiveKind::Election,
    PrimitiveKind::RedLock,
];

pub(crate) async fn inspect(client: &Client, Inspect { name, kind, form }: &Inspect) -> Result<u8, Failure> {
    if *kind == Some(Kind::Rate) {
        return Err(Failure::own("--kind rate: nobody holds a rate limiter or waits for it: see ls --kind rate"));
    }
    let kinds: Vec<PrimitiveKind> = kind.map_or_else(|| KINDS.to_vec(), |kind| vec![kind.into()]);
    let found = used(client, name, &kinds).await?;
    if form.json {
        show::json(&found)?;
    } else if found.is_empty() {
        show::lines(&[format!("{}: nobody holds it, and nobody waits for it", show::clean(name))])?;
    } else {
        let style = Style::of_output();
        show::lines(&found.iter().flat_map(|name| name.lines(style)).collect::<Vec<_>>())?;
    }
    Ok(if found.is_empty() { NO } else { OK })
}

/// The kinds of this name that are in use.
pub(crate) async fn used(client: &Client, name: &str, kinds: &[PrimitiveKind]) -> Result<Vec<Name>, Failure> {
    let names: Vec<NameInUse> = kinds.iter().map(|kind| NameInUse::new(*kind, name)).collect();
    let mut found = Vec::new();
    for (kind, state) in kinds.iter().zip(client.look(&names).await) {
        let state = Name::from(&state?);
        // Nobody holds a latch, which is in use from when it is set.
        let is_set = *kind == PrimitiveKind::Latch && client.latch(name).inspect().await?.remaining.is_some();
        if is_set || state.is_in_use() {
            found.push(state);
        }
    }
    Ok(found)
}
