//! `release --force`: takes holds from their holders.

use bowline::{Client, PrimitiveKind, Token, Whose};
use serde::Serialize;

use crate::args::look::Release;
use crate::exit::{Failure, NO, OK};
use crate::inspect::used;
use crate::show::{self, clean};
use crate::views;

/// What can be taken.
const KINDS: [PrimitiveKind; 3] = [PrimitiveKind::Lock, PrimitiveKind::RwLock, PrimitiveKind::Semaphore];

/// What was taken.
#[derive(Debug, Serialize)]
struct Taken<'a> {
    kind: &'static str,
    name: &'a str,
    holds: u64,
    /// A token for the protected resource, so that it rejects what the old holder still writes.
    token: Option<u64>,
}

pub(crate) async fn release(client: &Client, Release { name, kind, form, .. }: &Release) -> Result<u8, Failure> {
    let kind = match kind {
        Some(kind) => (*kind).into(),
        None => held(client, name).await?,
    };
    let (holds, token) = take(client, kind, name).await?;
    let taken = Taken { kind: views::kind(kind), name, holds, token: token.map(Token::get) };
    if form.json {
        show::json(&taken)?;
    } else {
        let token =
            taken.token.map_or_else(String::new, |token| format!("; have the resource reject tokens below {token}"));
        let what =
            if taken.holds == 0 { "nothing was held".to_owned() } else { format!("taken: {}{token}", taken.holds) };
        show::lines(&[format!("{} {}: {what}", taken.kind, clean(name))])?;
    }
    Ok(if taken.holds == 0 { NO } else { OK })
}

/// The kind under which the name is held.
async fn held(client: &Client, name: &str) -> Result<PrimitiveKind, Failure> {
    let found = used(client, name, &KINDS).await?;
    let held: Vec<PrimitiveKind> = KINDS
        .into_iter()
        .filter(|kind| found.iter().any(|name| name.kind == views::kind(*kind) && !name.holds.is_empty()))
        .collect();
    match held.as_slice() {
        [] => Ok(PrimitiveKind::Lock),
        [kind] => Ok(*kind),
        several => {
            let kinds: Vec<&str> = several.iter().map(|kind| views::kind(*kind)).collect();
            Err(Failure::own(format!("{name:?} is held as {}: choose one by --kind", kinds.join(" and "))))
        }
    }
}

/// The number of holds that were taken, and a token that is larger than theirs.
async fn take(client: &Client, kind: PrimitiveKind, name: &str) -> Result<(u64, Option<Token>), Failure> {
    let revoked = match kind {
        PrimitiveKind::Lock => {
            let token = client.lock(name).force_release().await?;
            return Ok((u64::from(token.is_some()), token));
        }
        PrimitiveKind::RwLock => client.rw_lock(name).force_release(Whose::Everybody).await?,
        PrimitiveKind::Semaphore => {
            // The limit stays as it is.
            let limit = client.semaphore(name, 1).inspect().await?.limit;
            client.semaphore(name, limit.max(1)).force_release(Whose::Everybody).await?
        }
        other => return Err(Failure::own(format!("the holds of {} cannot be taken", views::kind(other)))),
    };
    Ok((revoked.holds, revoked.token))
}
