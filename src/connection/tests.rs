use futures::FutureExt;

use super::*;
use crate::error::ErrorKind;

fn code(line: &str) -> (String, ErrorKind) {
    let error = ConnectionError::refused(line);
    let kind = error.kind();
    match error {
        ConnectionError::Refused { code, .. } => (code, kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_of_old_and_new_servers_have_one_code() {
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let old = format!(
        "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:12: {wrong_type}"
    );
    let denied = "ERR Error running script (call to f_6b): @user_script:3: -NOPERM this user has no permissions";
    let new = format!("{wrong_type} script: 6b1bf, on @user_script:12.");
    assert_eq!(code(&old), ("WRONGTYPE".into(), ErrorKind::WrongType));
    assert_eq!(code(&new), ("WRONGTYPE".into(), ErrorKind::WrongType));
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied = "ERR The user executing the script can't run this command or subcommand script: 6b1bf, on x:12.";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied = "ERR Error running script (call to f_6b): @user_script:3: @user_script: 3: The user executing the script \
                  can't run this command or subcommand";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied =
        "ERR ACL failure in script: User a has no permissions to run the 'set' command script: on @user_script:48.";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    assert_eq!(code(&format!("ERR {denied}")), ("NOPERM".into(), ErrorKind::Denied), "raised again by the script");
    assert_eq!(code("LOADING Redis is loading"), ("LOADING".into(), ErrorKind::Refused));
    assert_eq!(code("ERR unknown command 'EVALSHA'"), ("ERR".into(), ErrorKind::Unsupported));
    assert_eq!(code("ERR max number of clients reached"), ("ERR".into(), ErrorKind::Refused));
    assert_eq!(code("ERR"), ("ERR".into(), ErrorKind::Protocol));
    assert_eq!(code("").0, "");
}

#[test]
fn a_call_is_built_from_its_parts() {
    let script = Script::all().next().unwrap();
    let (keys, args) = (["k"], [Arg::Number(1)]);
    let call = Call::new(script, &keys, &args);
    assert_eq!((call.script.name(), call.keys, call.args.len(), call.within), (script.name(), &keys[..], 1, None));
    assert_eq!(call.within(Duration::from_secs(1)).within, Some(Duration::from_secs(1)));
    assert!(Topology::single_server().publish_counts_everyone && !Topology::cluster().publish_counts_everyone);
    let sharded = Topology::sharded_cluster();
    assert!(sharded.sharded_messages && sharded.publish_counts_everyone && sharded.one_name_per_call);
}

/// Leaves out everything that may be left out.
#[derive(Debug)]
struct Layer(Option<Able>);

#[async_trait]
impl Connection for Layer {
    fn inner(&self) -> Option<&dyn Connection> {
        self.0.as_ref().map(|inner| inner as &dyn Connection)
    }

    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        Vec::new()
    }

    async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        Topology::cluster()
    }

    fn close(&self) {}
}

/// Does everything that has a default.
#[derive(Debug)]
struct Able;

#[async_trait]
impl Connection for Able {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        Vec::new()
    }

    async fn run_acknowledged(
        &self,
        _: &[Call<'_>],
        replicas: u32,
        _: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        vec![Ok(Acknowledged::new(Reply::Nil, replicas))]
    }

    async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    async fn watch_key(&self, _: &str, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        Topology::cluster()
    }

    fn node_of(&self, key: &str) -> u64 {
        u64::try_from(key.len()).unwrap_or_default()
    }

    fn slot_of_each_server(&self) -> Option<Vec<u16>> {
        Some(vec![5, 9])
    }

    fn warnings(&self) -> Vec<Warning> {
        vec![Warning::Eviction { policy: "allkeys-lru".to_owned() }]
    }

    fn reconnects(&self) -> u64 {
        7
    }

    fn why_down(&self, _: &str) -> Option<ConnectionError> {
        Some(ConnectionError::Closed)
    }

    fn without_runtime(&self, _: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(Self))
    }

    fn close(&self) {}
}

/// What a wrapper leaves out is forwarded, and a connection that wraps none has nothing.
#[test]
fn what_a_wrapper_leaves_out_is_done_by_the_inner_connection() {
    let second = Duration::from_secs(1);
    for (layer, does) in [(Layer(Some(Able)), true), (Layer(None), false)] {
        let acknowledged = layer.run_acknowledged(&[], 3, second).now_or_never().unwrap();
        assert_eq!(acknowledged.len(), usize::from(does));
        let Err(watched) = layer.watch_key("abc", "inbox").now_or_never().unwrap() else { panic!("it watches") };
        assert_eq!(matches!(watched, ConnectionError::Closed), does, "{watched}");
        assert_eq!(layer.node_of("abc"), if does { 3 } else { 0 });
        assert_eq!(layer.slot_of_each_server(), does.then(|| vec![5, 9]));
        assert_eq!(layer.warnings().len(), usize::from(does));
        assert_eq!(layer.reconnects(), if does { 7 } else { 0 });
        assert_eq!(layer.why_down("abc").is_some(), does);
        assert_eq!(layer.without_runtime(second).is_some(), does);
    }
}
