//! Passwords that rotate, tokens that end and the names of connections, on every deployment and runtime, under a client
//! with holds and waiters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Config, ConnectOptions, Connection, Credentials, ErrorKind, Login};
use futures::executor::block_on;
use futures::future::{join, pending};

use crate::deployed::{Connect, Deployed, config, eventually, on_each_deployment, on_each_runtime};
use crate::support::adapters::{BOUND, Keys, acquire, bounded, release, word};

type Given = std::result::Result<Login, Box<dyn std::error::Error + Send + Sync>>;

/// The name of all connections.
const NAME: &str = "svc/1";

/// What a secret store has, and how often it was told of a refusal.
#[derive(Default)]
struct Store {
    password: Mutex<String>,
    refusals: AtomicUsize,
}

/// Keeps what the store has given until the server refuses it.
struct Keeping {
    store: Arc<Store>,
    kept: Mutex<Option<Login>>,
}

#[async_trait]
impl Credentials for Keeping {
    async fn login(&self, refused: Option<&Login>) -> Given {
        let mut kept = self.kept.lock().unwrap();
        // The first of several connections to be refused.
        if refused.is_some() && refused == kept.as_ref() {
            self.store.refusals.fetch_add(1, Ordering::SeqCst);
            *kept = None;
        }
        let password = || Login::new("rotating", &**self.store.password.lock().unwrap());
        Ok(kept.get_or_insert_with(password).clone())
    }
}

/// All connections are lost, and each login with the password that is kept is refused.
#[test]
fn a_password_rotates_under_holds_and_waiters() {
    bounded(|| {
        on_each_deployment(|deployed| on_each_runtime(|connect, _| block_on(rotate(deployed, connect))));
    });
}

async fn rotate(deployed: &Deployed<'_>, connect: Connect) {
    deployed.set_user("rotating", "first");
    let store = Arc::new(Store { password: Mutex::new("first".to_owned()), ..Store::default() });
    let client = async || {
        let provider = Keeping { store: Arc::clone(&store), kept: Mutex::default() };
        let options = ConnectOptions::new(&deployed.url).credentials(provider).client_name(NAME);
        connect(options, config()).await.unwrap()
    };
    let (holder, other) = (client().await, client().await);
    let guard = holder.lock("a").lock().await.unwrap();
    let waits = async { other.lock("a").lock().await.unwrap().release().await.unwrap() };
    let rotates = async {
        while holder.lock("a").inspect().await.unwrap().waiters == 0 {}
        {
            // A login meanwhile gets the second password, or is refused with the first one and asks for the second.
            let mut password = store.password.lock().unwrap_or_else(PoisonError::into_inner);
            deployed.set_user("rotating", "second");
            "second".clone_into(&mut password);
        }
        deployed.all(&["CLIENT", "KILL", "USER", "rotating"]);
        holder.lock("b").lock().await.unwrap().release().await.unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    };
    join(waits, rotates).await;
    assert_eq!(store.refusals.load(Ordering::SeqCst), 2, "each client had kept the first password");
    holder.close().await;
    other.close().await;
}

/// Users that the servers know for a while: what a token is to Redis.
struct Tokens {
    last: AtomicUsize,
}

#[async_trait]
impl Credentials for Tokens {
    async fn login(&self, _: Option<&Login>) -> Given {
        let last = self.last.load(Ordering::SeqCst);
        Ok(Login::new(format!("token-{last}"), "s").valid_for(Duration::from_millis(600)))
    }
}

/// A server closes the connections of a user that is deleted. So none is lost only if all have logged in anew before.
#[test]
fn tokens_end_and_no_connection_is_lost() {
    bounded(|| {
        on_each_deployment(|deployed| on_each_runtime(|connect, _| block_on(renew(deployed, connect))));
    });
}

async fn renew(deployed: &Deployed<'_>, connect: Connect) {
    deployed.set_user("token-0", "s");
    let tokens = Arc::new(Tokens { last: AtomicUsize::new(0) });
    let options = || ConnectOptions::new(&deployed.url).credentials(Arc::clone(&tokens)).client_name(NAME);
    let holder = connect(options(), config()).await.unwrap();
    let other = connect(options(), config()).await.unwrap();
    // In a cluster, so many names are on all masters.
    let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(holder.lock(name).lock().await.unwrap());
    }
    let waits = async {
        for name in &names {
            other.lock(name).lock().await.unwrap().release().await.unwrap();
        }
    };
    let renews = async {
        while holder.lock("0").inspect().await.unwrap().waiters == 0 {}
        for token in 1..3 {
            let [before, now] = [token - 1, token].map(|token| format!("token-{token}"));
            deployed.set_user(&now, "s");
            let connections = deployed.connections(&before).len();
            assert!(connections >= 2);
            tokens.last.store(token, Ordering::SeqCst);
            eventually("all have logged in anew", || deployed.connections(&before).is_empty());
            let after = deployed.connections(&now);
            assert!(after.iter().all(|line| line.contains(&format!(" name={NAME} "))), "{after:?}");
            deployed.all(&["ACL", "DELUSER", &before]);
        }
        for guard in guards {
            assert!(guard.is_valid());
            guard.release().await.unwrap();
        }
    };
    join(waits, renews).await;
    assert_eq!([holder.stats().reconnects, other.stats().reconnects], [0, 0]);
    holder.close().await;
    other.close().await;
    deployed.all(&["ACL", "DELUSER", "token-2"]);
}

/// Calls a function.
struct Asks(fn() -> Option<Given>);

#[async_trait]
impl Credentials for Asks {
    async fn login(&self, _: Option<&Login>) -> Given {
        match (self.0)() {
            Some(given) => given,
            None => pending().await,
        }
    }
}

#[test]
fn what_a_provider_may_do_wrong_is_named() {
    bounded(|| {
        on_each_deployment(|deployed| {
            deployed.set_user("rotating", "right");
            on_each_runtime(|connect, _| {
                let fails = |provider: fn() -> Option<Given>, kind, says: &str| {
                    let options = ConnectOptions::new(&deployed.url).credentials(Asks(provider));
                    let config = Config::builder().command_timeout(Duration::from_secs(1)).build().unwrap();
                    let error = block_on(connect(options, config)).unwrap_err();
                    assert_eq!(error.kind(), kind, "{error:#}");
                    assert!(error.to_string().contains(says), "{error:#}");
                };
                fails(|| Some(Ok(Login::new("rotating", "wrong"))), ErrorKind::Denied, "password is wrong");
                fails(|| Some(Err("the vault is shut".into())), ErrorKind::Unavailable, "failed: the vault is shut");
                fails(|| panic!("by the test"), ErrorKind::Unavailable, "failed: it panicked");
                fails(|| None, ErrorKind::Unavailable, "the provider of credentials gave no login within");
                let both = ConnectOptions::new(&deployed.url).password("s").credentials(Asks(|| None));
                assert_eq!(block_on(connect(both, config())).unwrap_err().kind(), ErrorKind::InvalidInput);
                let unnamed = ConnectOptions::new(&deployed.url).client_name("a b");
                let error = block_on(connect(unnamed, config())).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains("without spaces"), "{error}");
            });
        });
    });
}

/// The connection without a runtime logs in with what was given last, and has the same name.
#[test]
fn the_last_login_is_that_of_the_good_bye() {
    bounded(|| {
        on_each_deployment(|deployed| {
            on_each_runtime(|_, open| {
                block_on(async {
                    deployed.set_user("rotating", "first");
                    let store = Arc::new(Store { password: Mutex::new("first".to_owned()), ..Store::default() });
                    let provider = Keeping { store: Arc::clone(&store), kept: Mutex::default() };
                    let options = ConnectOptions::new(&deployed.url).credentials(provider).client_name(NAME);
                    let config = Config::builder().prefix("test").command_timeout(BOUND / 4).build().unwrap();
                    let connection = open(options, config).await.unwrap();
                    let keys = Keys::of("a");
                    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
                    deployed.set_user("rotating", "second");
                    "second".clone_into(&mut store.password.lock().unwrap());
                    deployed.all(&["CLIENT", "KILL", "USER", "rotating"]);
                    // The first call may still be written to the old socket.
                    while acquire(&connection, &keys, "c1:1").await.is_err() {}
                    connection.close();
                    eventually("all connections are closed", || deployed.connections("rotating").is_empty());
                    let blocking = connection.without_runtime(BOUND / 4).expect("a connection without a runtime");
                    assert_eq!(word(&release(&*blocking, &keys, "c1:1").await), "RELEASED");
                    let connections = deployed.connections("rotating");
                    assert!(connections.iter().all(|line| line.contains(&format!(" name={NAME} "))), "{connections:?}");
                    assert!(!connections.is_empty());
                });
            });
        });
    });
}
