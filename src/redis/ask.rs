//! Commands of the command line, which asks servers about their settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// What became of a question. Not part of the public API.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Asked {
    /// The answer of the server.
    pub answer: Result<Reply, ConnectionError>,
    /// When the question was sent, by the clock of the executor.
    pub sent: Instant,
    /// How long the answer took.
    pub took: Duration,
}

impl Primaries {
    /// Asks each of them these questions, one after the other, until a question has no answer. In a cluster, they are
    /// the masters of these slots. The answers come with the address that they are from.
    pub(super) async fn ask_each(&self, slots: &[u16], questions: &[&[&str]]) -> Vec<(String, Vec<Asked>)> {
        let links = match self {
            Self::One(link) => vec![link.clone()],
            Self::Several(masters) => masters.links(slots),
        };
        let mut answers = Vec::with_capacity(links.len());
        for link in links {
            let mut address = link.locate.to_string();
            let mut all = Vec::with_capacity(questions.len());
            for words in questions {
                let asked = ask(&link, &mut address, words).await;
                // A server that does not answer costs one time limit, and not one for each question.
                let is_answered = matches!(asked.answer, Ok(_) | Err(ConnectionError::Refused { .. }));
                all.push(asked);
                if !is_answered {
                    break;
                }
            }
            answers.push((address, all));
        }
        answers
    }
}

/// `address` becomes that of the server that is asked, if it is not always the same one.
async fn ask(link: &Link, address: &mut String, words: &[&str]) -> Asked {
    let mut sent = link.executor.now();
    let Some((name, arguments)) = words.split_first() else {
        return Asked { answer: Ok(Reply::Nil), sent, took: Duration::ZERO };
    };
    let mut command = cmd(name);
    command.arg(arguments);
    let asked = async {
        let mut up = link.ready().await?;
        if link.locate.moves() {
            *address = up.server.to_string();
        }
        // The wait for a connection is no part of the round trip.
        sent = link.executor.now();
        let answer = up.connection.send_packed_command(&command).await;
        let refused = |error| convert::refused_by_server(&error).unwrap_or_else(|| lost(error));
        answer.map_err(refused).and_then(convert::reply)
    };
    let answer = link.within(link.timeout, asked).await.unwrap_or_else(|| Err(link.unavailable()));
    Asked { answer, sent, took: link.executor.now().saturating_duration_since(sent) }
}
