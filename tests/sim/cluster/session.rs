//! A node's end of one socket: it executes the commands of the client in order, and passes messages on.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bowline::{Call, Notice};
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::BoxStream;

use super::resp::{Eval, Say, Words, take, text};
use super::socket::Socket;
use super::{Cluster, SETTLED, answers};
use crate::executor::WORLD;
use crate::network::{Backend, COMMAND_TIMEOUT, Subject, Way};
use crate::nodes::{Node, reader, slot_of};

pub struct Session {
    cluster: Arc<Cluster>,
    socket: Arc<Socket>,
    buffer: Vec<u8>,
    subscriptions: Vec<Subscription>,
    asking: bool,
    /// The number of the last write on this socket.
    written: u64,
    /// The connection was lost: no answer gets through.
    late: bool,
}

struct Subscription {
    channel: String,
    /// That of a shard channel.
    slot: Option<&'static str>,
    is_shard: bool,
    /// `None`: it is that of no client.
    messages: Option<BoxStream<'static, Notice>>,
}

enum Next {
    Arrived(Option<Vec<u8>>),
    Message(usize, Vec<u8>),
    /// The node may have learned that it has lost a slot.
    Learned,
    Over,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cluster.closed(self.socket.number);
    }
}

impl Session {
    pub fn new(cluster: &Arc<Cluster>, socket: &Arc<Socket>) -> Self {
        let (cluster, socket, subscriptions) = (cluster.clone(), socket.clone(), Vec::new());
        Self { cluster, socket, buffer: Vec::new(), subscriptions, asking: false, written: 0, late: false }
    }

    fn node(&self) -> Node {
        self.socket.node
    }

    pub async fn serve(mut self) {
        loop {
            let next = self.next().await;
            self.thaws().await;
            match next {
                Next::Arrived(Some(bytes)) => {
                    self.buffer.extend(bytes);
                    self.execute_all().await;
                }
                Next::Arrived(None) => break,
                Next::Message(at, payload) => self.pass_on(at, payload),
                Next::Learned => self.leave(),
                Next::Over => self.subscriptions.clear(),
            }
        }
        self.subscriptions.clear();
        // The connection was lost while calls were on their way. They are never executed, or very late.
        self.buffer.extend(self.socket.rest());
        if self.buffer.is_empty() || self.cluster.machine.random(|random| random.one_in(2)) {
            return;
        }
        let late = self.cluster.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
        self.cluster.machine.process(WORLD).sleep(late).await;
        self.thaws().await;
        self.late = true;
        self.execute_all().await;
    }

    async fn next(&mut self) -> Next {
        let learned = self.cluster.server.nodes.learns();
        if self.has_to_leave().is_some() {
            return Next::Learned;
        }
        let (is_deaf, socket) = (self.subscriptions.is_empty(), self.socket.clone());
        let over = pin!(async {
            match is_deaf {
                true => pending().await,
                false => socket.over().await,
            }
        });
        // Nothing arrives when it is over: what has arrived is executed first.
        let arrived = pin!(self.socket.arrived());
        let rest = pin!(async {
            match select(over, learned).await {
                Either::Left(_) => Next::Over,
                Either::Right(_) => Next::Learned,
            }
        });
        let message = pin!(poll_fn(|context| {
            for (at, subscription) in self.subscriptions.iter_mut().enumerate() {
                let Some(messages) = &mut subscription.messages else { continue };
                if let Poll::Ready(Some(Notice::Message(payload))) = messages.poll_next_unpin(context) {
                    return Poll::Ready(Next::Message(at, payload));
                }
            }
            Poll::Pending
        }));
        match select(arrived, select(message, rest)).await {
            Either::Left((arrived, _)) => Next::Arrived(arrived),
            Either::Right((Either::Left((next, _)) | Either::Right((next, _)), _)) => next,
        }
    }

    /// Until the node does not stand still.
    fn thaws(&self) -> impl Future<Output = ()> + use<> {
        let (cluster, node) = (self.cluster.clone(), self.node());
        async move {
            loop {
                let frozen = cluster.server.nodes.frozen_for(node).max(cluster.server.frozen_for());
                if frozen.is_zero() {
                    return;
                }
                cluster.machine.process(WORLD).sleep(frozen).await;
            }
        }
    }

    fn pass_on(&mut self, at: usize, payload: Vec<u8>) {
        let Subscription { channel, is_shard, .. } = &self.subscriptions[at];
        let kind = if *is_shard { "smessage" } else { "message" };
        self.say(&Say::Push(vec![text(kind), text(channel.as_str()), Say::Bytes(payload)]));
    }

    fn say(&self, say: &Say) {
        let mut out = Vec::new();
        say.write(&mut out);
        self.socket.send(out);
    }

    /// A shard channel of a slot that the node does not serve any more.
    fn has_to_leave(&self) -> Option<usize> {
        let nodes = &self.cluster.server.nodes;
        let left = |subscription: &Subscription| subscription.slot.is_some_and(|slot| !nodes.takes(self.node(), slot));
        self.subscriptions.iter().position(left)
    }

    fn leave(&mut self) {
        while let Some(at) = self.has_to_leave() {
            let channel = self.subscriptions.remove(at).channel;
            self.say(&Say::Push(vec![text("sunsubscribe"), text(channel), Say::Number(0)]));
        }
    }

    async fn execute_all(&mut self) {
        let mut out = Vec::new();
        while let Some(words) = take(&mut self.buffer) {
            if words[0].eq_ignore_ascii_case(b"WAIT") {
                self.socket.send(std::mem::take(&mut out));
            }
            let said = match words[0].eq_ignore_ascii_case(b"WAIT") {
                true => {
                    let number = |n: usize| std::str::from_utf8(&words[n]).unwrap().parse::<u64>().unwrap();
                    let waits = self.wait(number(1) as u32, number(2));
                    vec![waits.await]
                }
                false => self.execute(&words),
            };
            said.iter().for_each(|say| say.write(&mut out));
        }
        self.socket.send(out);
    }

    fn execute(&mut self, words: &Words) -> Vec<Say> {
        let asking = std::mem::take(&mut self.asking);
        let word = |n: usize| words.get(n).map_or(String::new(), |word| String::from_utf8_lossy(word).into_owned());
        let (nodes, node) = (&self.cluster.server.nodes, self.node());
        let unknown = || Say::Error(format!("ERR unknown command '{}', with args beginning with: ", word(0)));
        let is_sharded = nodes.is_sharded();
        vec![match &*word(0).to_uppercase() {
            "HELLO" => {
                if words.len() == 1 {
                    self.socket.ready();
                    self.cluster.churned(self.cluster.delays.1);
                }
                answers::hello(nodes, node)
            }
            "AUTH" | "SELECT" | "CLIENT" | "READONLY" => Say::Status("OK"),
            "PING" => Say::Status("PONG"),
            "INFO" => text("# Memory\r\nmaxmemory_policy:noeviction\r\n"),
            "ROLE" => answers::role(nodes, node),
            "CLUSTER" => match &*word(1).to_uppercase() {
                "INFO" => answers::info(nodes, node),
                "SLOTS" => answers::slots(nodes, node),
                "NODES" => answers::nodes(nodes, node),
                "SHARDS" => answers::shards(nodes, node),
                "MYID" => text(answers::id(node)),
                _ => unknown(),
            },
            "ASKING" => {
                self.asking = true;
                Say::Status("OK")
            }
            "EVAL" | "EVALSHA" => self.eval(words, asking),
            "SUBSCRIBE" | "SSUBSCRIBE" => return self.subscribe(words, &word(0).to_lowercase()),
            "UNSUBSCRIBE" | "SUNSUBSCRIBE" => {
                self.subscriptions.retain(|subscription| subscription.channel != word(1));
                Say::Push(vec![text(word(0).to_lowercase()), text(word(1)), Say::Number(0)])
            }
            // The library publishes in scripts only, and tries here whether it may.
            "SPUBLISH" if is_sharded => Say::Number(0),
            "PUBSUB" if is_sharded => Say::List(Vec::new()),
            _ => unknown(),
        }]
    }

    fn eval(&mut self, words: &[Vec<u8>], asking: bool) -> Say {
        let (server, node) = (&self.cluster.server, self.node());
        let Eval { whole, script, keys, args } = Eval::of(words);
        let is_sent_away = || server.nodes.redirect(node, &keys, asking).is_some();
        if !whole && !server.nodes.has_script(node, script) && !is_sent_away() {
            return Say::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned());
        }
        let call = Call::new(script, &keys, &args);
        let late = self.late || self.socket.is_over() || !self.cluster.awaits(&call);
        let before = server.written(node);
        let reply = server.execute(node, self.cluster.process, call, Way { asking, late });
        let after = server.written(node);
        if after != before {
            self.written = after;
        }
        match reply {
            Ok(reply) => {
                server.nodes.keep_script(node, script);
                reply.into()
            }
            Err(bowline::ConnectionError::Refused { code, message }) => {
                if matches!(&*code, "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN") {
                    self.cluster.churned(self.cluster.delays.1 + SETTLED);
                } else {
                    server.nodes.keep_script(node, script);
                }
                Say::Error(format!("{code} {message}"))
            }
            // A copy that no client sends.
            Err(_) => Say::Error("ERR not executed".to_owned()),
        }
    }

    fn wait(&self, replicas: u32, millis: u64) -> impl Future<Output = Say> + use<> {
        let until = self.cluster.machine.now() + Duration::from_millis(millis);
        let (server, node, written, thaws) = (self.cluster.server.clone(), self.node(), self.written, self.thaws());
        async move {
            let count = server.acknowledged(node, written, replicas, until).await;
            thaws.await;
            match count {
                Ok(count) => Say::Number(count.into()),
                Err(bowline::ConnectionError::Refused { code, message }) => Say::Error(format!("{code} {message}")),
                Err(other) => panic!("WAIT: {other}"),
            }
        }
    }

    fn subscribe(&mut self, words: &[Vec<u8>], kind: &str) -> Vec<Say> {
        let (server, node, is_shard) = (self.cluster.server.clone(), self.node(), kind == "ssubscribe");
        if is_shard && !server.nodes.is_sharded() {
            return vec![Say::Error("ERR unknown command 'SSUBSCRIBE', with args beginning with: ".to_owned())];
        }
        let mut said = Vec::new();
        for channel in &words[1..] {
            let channel = String::from_utf8(channel.clone()).unwrap();
            // The channel of no client, by which the library tries whether there are shard channels.
            let is_nobodys = reader(&channel).parse() == Ok(uuid::Uuid::nil());
            let slot = Some(&channel).filter(|_| is_shard && !is_nobodys).and_then(|channel| slot_of(channel));
            if let Some(slot) = slot.filter(|slot| !server.nodes.takes(node, slot)) {
                said.push(Say::Error(server.nodes.moved(node, slot)));
                continue;
            }
            if !is_nobodys {
                self.socket.subscribe();
                self.cluster.churned(self.cluster.delays.1);
            }
            let messages = (!is_nobodys).then(|| server.listen(node, &Subject::Channel(channel.clone())));
            self.subscriptions.push(Subscription { channel: channel.clone(), slot, is_shard, messages });
            let count = self.subscriptions.len() as i64;
            said.push(Say::Push(vec![text(kind), text(channel), Say::Number(count)]));
        }
        said
    }
}
