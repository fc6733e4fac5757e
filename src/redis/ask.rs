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
    let (began, mut sent) = (link.executor.now(), None);
    let Some((name, arguments)) = words.split_first() else {
        return Asked { answer: Ok(Reply::Nil), sent: began, took: Duration::ZERO };
    };
    let mut command = cmd(name);
    command.arg(arguments);
    let asked = async {
        let mut up = link.ready().await?;
        if link.locate.moves() {
            *address = up.server.to_string();
        }
        // The wait for a connection is no part of the round trip.
        sent = Some(link.executor.now());
        let answer = up.connection.send_packed_command(&command).await;
        let refused = |error| convert::refused_by_server(&error).unwrap_or_else(|| lost(error));
        answer.map_err(refused).and_then(convert::reply)
    };
    let answer = link.within(link.timeout, asked).await.unwrap_or_else(|| match sent {
        Some(_) => Err(ConnectionError::Unknown(format!("no answer within {:?}", link.timeout))),
        None => Err(link.unavailable()),
    });
    let sent = sent.unwrap_or(began);
    Asked { answer, sent, took: link.executor.now().saturating_duration_since(sent) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::lab::{Lab, Tasks, ms};
    use super::*;
    use crate::runtime::Executor;

    #[test]
    fn a_failure_says_whether_the_question_was_sent() {
        for is_connected in [true, false] {
            let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
            let link = lab.link(&mut tasks);
            let node = &lab.nodes[&1];
            node.frozen.store(is_connected, Ordering::SeqCst);
            if !is_connected {
                node.dead.store(true, Ordering::SeqCst);
                node.sockets().into_iter().for_each(|socket| node.cut(socket));
                lab.run(&mut tasks, Executor::sleep(&*lab, ms(1)));
            }
            let primaries = Primaries::One(Arc::clone(&link));
            let mut answers = lab.run(&mut tasks, primaries.ask_each(&[], &[&["PING"], &["PING"]]));
            let mut asked = answers.remove(0).1;
            assert_eq!(asked.len(), 1, "the second one would not be answered either");
            let answer = asked.remove(0).answer;
            match is_connected {
                true => {
                    assert_eq!(answer, Err(ConnectionError::Unknown(format!("no answer within {:?}", link.timeout))))
                }
                false => assert!(matches!(answer, Err(ConnectionError::Unreachable(_))), "{answer:?}"),
            }
        }
    }
}
