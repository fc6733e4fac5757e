//! Calls that wait for replicas.

use std::time::Duration;

use bowline::{Acknowledged, Connection, ConnectionError, Reply, wire};
use futures::future::join;

use crate::support::adapters::{Keys, Runtime, acquire, admin, calls, ours};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

const LONG: Duration = Duration::from_secs(15);
/// For a wait in vain: a fifth of it is left for the answer, which must be enough on a busy machine.
const IN_VAIN: Duration = Duration::from_secs(4);

/// Takes all `locks` in one write: the first word of each reply, and how many replicas have it.
async fn taken(
    connection: &dyn Connection,
    locks: &[&str],
    replicas: u32,
    within: Duration,
) -> Vec<Result<(String, u32), ConnectionError>> {
    let requests: Vec<_> = locks.iter().map(|lock| Keys::of(lock).acquire("c1:1")).collect();
    let parts: Vec<_> = requests.iter().map(|request| (request.keys(), request.args())).collect();
    let answers = connection.run_acknowledged(&calls(&requests, &parts), replicas, within).await;
    let shown = |answer: Acknowledged| match &wire::in_full(answer.reply) {
        Reply::Array(items) => match &items[0] {
            Reply::Bytes(word) => (String::from_utf8(word.clone()).unwrap(), answer.replicas),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    answers.into_iter().map(|answer| answer.map(shown)).collect()
}

fn granted(replicas: u32) -> Result<(String, u32), ConnectionError> {
    Ok(("GRANTED".to_owned(), replicas))
}

pub(crate) async fn answers_come_with_the_number_of_replicas(rt: Runtime) {
    let [server, replica] = Server::start_pair();
    let connection = rt.connect(&server.url()).await;
    assert_eq!(taken(&connection, &["a", "b"], 1, LONG).await, [granted(1), granted(1)]);
    // The replicas are counted after the calls even if the server has lost their script.
    admin(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(taken(&connection, &["c"], 1, LONG).await, [granted(1)]);
    // There is only one replica.
    assert_eq!(taken(&connection, &["d"], 2, IN_VAIN).await, [granted(1)]);

    replica.pause();
    admin(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(taken(&connection, &["e"], 1, IN_VAIN).await, [granted(0)]);
    // A call that waits for replicas delays no other call.
    let lock = Keys::of("g");
    let (waiting, other) = join(taken(&connection, &["f"], 1, LONG), async {
        let answered = acquire(&connection, &lock, "c1:1").await;
        replica.resume();
        answered
    })
    .await;
    assert_eq!(waiting, [granted(1)]);
    other.unwrap();
    assert_eq!(taken(&connection, &[], 1, LONG).await, []);
    connection.close();
    assert_eq!(taken(&connection, &["h"], 1, LONG).await, [Err(ConnectionError::Closed)]);
    rt.eventually("both connections are closed", || ours(&server).is_empty()).await;
}

/// The request is held up on its way for longer than the connection took at login.
pub(crate) async fn a_wait_in_vain_leaves_time_for_its_answer(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let connection = rt.connect(&proxy.url()).await;
    // The connection that waits is there before the proxy stalls.
    assert_eq!(taken(&connection, &["a"], 0, LONG).await, [granted(0)]);
    proxy.stall(true);
    let (waited, ()) = join(taken(&connection, &["b"], 1, IN_VAIN), async {
        rt.executor.sleep(Duration::from_millis(300)).await;
        proxy.stall(false);
    })
    .await;
    assert_eq!(waited, [granted(0)]);
}

/// Of two servers behind one address, the one that calls go to is the one whose replicas count.
pub(crate) async fn the_wait_is_at_the_server_of_the_calls(rt: Runtime) {
    let [old, new] = Server::start_pair();
    let third = Server::start_with(&Server::FOLLOWS_AT_ONCE);
    third.follow(&old);
    let proxy = Proxy::start(old.port());
    let connection = rt.connect(&proxy.url()).await;
    assert_eq!(taken(&connection, &["a"], 2, LONG).await, [granted(2)]);
    // The old primary is not told, and keeps its replica and its connections.
    new.promote();
    proxy.lead_to(new.port());
    admin(&old, &["CLIENT", "KILL", "ID", &id_of_calls(&old)]);
    rt.eventually("calls go to the new one", || !ours(&new).is_empty()).await;
    rt.eventually("the connection is up", || format!("{connection:?}").contains("up")).await;
    assert_eq!(taken(&connection, &["b"], 1, IN_VAIN).await, [granted(0)]);
    rt.eventually("the old one is left", || ours(&old).is_empty()).await;
    third.follow(&new);
    assert_eq!(taken(&connection, &["c"], 1, LONG).await, [granted(1)]);
}

/// Of the two connections there, the older one.
fn id_of_calls(server: &Server) -> String {
    let id = |line: &String| crate::support::adapters::field(line, "id").parse::<u64>().unwrap();
    ours(server).iter().map(id).min().unwrap().to_string()
}

pub(crate) async fn a_user_who_may_not_wait(rt: Runtime) {
    let server = Server::start();
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all", "-wait"]);
    let connection = rt.connect(&server.url().replace("://", "://alice:s3cret@")).await;
    let refused = taken(&connection, &["a"], 1, LONG).await.remove(0).unwrap_err();
    assert_eq!(super::code(&refused), "NOPERM");
}
