//! What is refused, and why.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{
    Acknowledged, Call, Client, Config, Connection, ConnectionError, ErrorKind, Notice, RedLock, Reply, Topology,
    embedded,
};
use futures::stream::BoxStream;

use crate::gate::Gated;
use crate::masters::{Masters, ms};
use crate::on_masters;
use crate::support::env::{Env, on_runtime};
use crate::support::stepped::Stepped;

on_masters! {
    two_clients_of_one_server_are_found,
    names_and_leases_are_checked,
}

on_runtime! { run_embedded, clients, TokioMulti, the_clients_are_checked, the_clocks_are_checked }

async fn two_clients_of_one_server_are_found(env: Env) {
    let masters = Masters::three(&env);
    let clients =
        [masters.all[0].another(&env).await, masters.all[1].another(&env).await, masters.all[0].another(&env).await];
    let locks = RedLock::builder(clients).durable(true).build().unwrap();
    let error = locks.lock("a").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("masters 1 and 3 of the RedLock are the same server"), "{error}");
    masters.nothing_is_left().await;
}

async fn names_and_leases_are_checked(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let locks = &program.locks;
    let errors = [
        locks.lock("").await.map(drop).unwrap_err(),
        locks.try_lock("").await.map(drop).unwrap_err(),
        locks.inspect("").await.map(drop).unwrap_err(),
        locks.lock("a").lease(ms(3001)).await.map(drop).unwrap_err(),
        locks.lock("a").expires_after(ms(3001)).await.map(drop).unwrap_err(),
        locks.lock("a").acknowledged_by(1).await.map(drop).unwrap_err(),
        locks.lock("a").retained(ms(100)).await.map(drop).unwrap_err(),
        locks.lock("a").force_after(ms(100)).await.map(drop).unwrap_err(),
        locks.try_lock("a").retained(ms(100)).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(program.counts.iter().all(|counts| counts.total() == 0), "nothing was sent");
}

/// A hold compares the times of all masters' clients.
async fn the_clocks_are_checked(env: Env) {
    let client = async |ahead: Duration| {
        let executor = Arc::new(Stepped::new(env.executor()));
        executor.pass(ahead);
        let connection = embedded::Server::new().connect(executor.clone());
        Client::connect(executor, Arc::new(connection), Config::default()).await.unwrap()
    };
    for (ahead, is_taken) in [(ms(900), true), (ms(3_600_000), false)] {
        for ahead_of in [[ahead, ms(0)], [ms(0), ahead]] {
            let [first, last] = ahead_of;
            let clients = [client(first).await, client(first).await, client(last).await];
            match RedLock::new(clients) {
                Ok(_) => assert!(is_taken, "{ahead_of:?}"),
                Err(error) => {
                    assert!(!is_taken && error.kind() == ErrorKind::InvalidInput, "{error}");
                    assert!(error.to_string().contains("the executor of master 3 shows another time"), "{error}");
                }
            }
        }
    }
}

async fn the_clients_are_checked(env: Env) {
    let client = async |config: Config, topology: Topology| {
        let inner = embedded::Server::new().connect(env.executor());
        let connection = Gated { inner, gate: Arc::default(), topology, executor: env.executor() };
        Client::connect(env.executor(), Arc::new(connection), config).await.unwrap()
    };
    let plain = async || client(Config::default(), Topology::single_server()).await;
    let [a, b, c, d] = [plain().await, plain().await, plain().await, plain().await];
    let mut behind_sentinels = Topology::single_server();
    behind_sentinels.fails_over = true;
    let failing_over = client(Config::default(), behind_sentinels).await;
    let cluster = client(Config::default(), Topology::cluster()).await;
    let replicated = Config::builder().acknowledged_by(1).build().unwrap();
    let wrong: Vec<(Vec<Client>, &str)> = vec![
        (vec![], "3 or 5 masters, not 0"),
        (vec![a.clone()], "not 1"),
        (vec![a.clone(), b.clone()], "not 2"),
        (vec![a.clone(), b.clone(), c.clone(), d.clone()], "3 or 5 masters; it can have 4 if it has a masters_version"),
        (vec![a.clone(), b.clone(), a.clone()], "masters 1 and 3 have the same client"),
        (vec![a.clone(), b.clone(), failing_over], "master 3: it is behind a failover"),
        (vec![cluster, a.clone(), b.clone()], "master 1: it is a cluster"),
    ];
    for (clients, reason) in wrong {
        let error = RedLock::new(clients).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(reason), "{error}");
    }
    let three = || RedLock::builder([a.clone(), b.clone(), c.clone()]);
    assert_eq!(format!("{:?}", three().build().unwrap()), "RedLock { masters: 3, .. }");
    let four = RedLock::builder([a.clone(), b.clone(), c.clone(), d.clone()]).masters_version("s", 2);
    assert!(four.build().is_ok());
    let long = "x".repeat(65);
    let mut builders = vec![three().node_timeout(ms(0)), three().longest_lease(ms(99))];
    builders.extend(["", "a b", "a\n", &long].map(|name| three().masters_version(name, 1)));
    builders.push(RedLock::builder([a.clone(), b.clone()]).masters_version("s", 1));
    for builder in builders {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let inner = embedded::Server::new().connect(env.executor());
    let waits = Client::connect(env.executor(), Arc::new(Waiting(inner)), replicated).await.unwrap();
    let error = RedLock::new([a, b, waits]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("master 3 sets acknowledged_by"), "{error}");
}

/// A connection that can wait for replicas, of which there is none.
#[derive(Debug)]
struct Waiting<C>(C);

#[async_trait]
impl<C: Connection> Connection for Waiting<C> {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&self.0)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.0.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.0.run_batch(calls).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        _replicas: u32,
        _within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let answers = self.0.run_batch(calls).await;
        answers.into_iter().map(|answer| answer.map(|reply| Acknowledged::new(reply, 0))).collect()
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.0.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.0.topology()
    }

    fn close(&self) {
        self.0.close();
    }
}
