//! Commands of the command line, which asks servers about their settings.

use std::sync::Arc;

use ::redis::cmd;

use super::cluster::Masters;
use super::convert;
use super::link::Link;
use super::link::sending::lost;
use crate::connection::{ConnectionError, Reply};

/// Where to find the links to the primaries.
pub(super) enum Primaries {
    One(Arc<Link>),
    Several(Masters),
}

impl Primaries {
    /// Sends a command to each of them. In a cluster, they are the masters of these slots. Each answer comes with the
    /// address that it is from.
    pub(super) async fn ask_each(
        &self,
        slots: &[u16],
        words: &[&str],
    ) -> Vec<(String, Result<Reply, ConnectionError>)> {
        let links = match self {
            Self::One(link) => vec![link.clone()],
            Self::Several(masters) => masters.links(slots),
        };
        let mut answers = Vec::with_capacity(links.len());
        for link in links {
            let mut address = link.locate.to_string();
            let answer = ask(&link, &mut address, words).await;
            answers.push((address, answer));
        }
        answers
    }
}

/// `address` becomes that of the server that is asked.
async fn ask(link: &Link, address: &mut String, words: &[&str]) -> Result<Reply, ConnectionError> {
    let Some((name, arguments)) = words.split_first() else { return Ok(Reply::Nil) };
    let mut command = cmd(name);
    command.arg(arguments);
    let asked = async {
        let mut up = link.ready().await?;
        *address = up.server.to_string();
        let answer = up.connection.send_packed_command(&command).await;
        let refused = |error| convert::refused_by_server(&error).unwrap_or_else(|| lost(error));
        answer.map_err(refused).and_then(convert::reply)
    };
    link.within(link.timeout, asked).await.unwrap_or_else(|| Err(link.unavailable()))
}
