use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;

use super::*;
use crate::connection::{Connection, ConnectionError, Notice, Reply};
use crate::mutex::lock;
use crate::runtime::still::Still;

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

/// The reply, or the error's code and message.
fn eval(source: &str) -> Result<Reply, String> {
    Server::manual().eval(source, &[b"k"], &[b"a", b"\xff\0"]).map_err(|error| error.to_string())
}

#[test]
fn what_scripts_return_becomes_a_reply() {
    let list = |items: &[Reply]| Reply::Array(items.to_vec());
    for (source, reply) in [
        ("return 3.99", Reply::Integer(3)),
        ("return -3.99", Reply::Integer(-3)),
        ("return 9007199254740991", Reply::Integer(9_007_199_254_740_991)),
        ("return 'x'", bytes("x")),
        ("return true", Reply::Integer(1)),
        ("return false", Reply::Nil),
        ("return nil", Reply::Nil),
        ("return", Reply::Nil),
        ("return {1, 'a', {true}, nil, 3}", list(&[Reply::Integer(1), bytes("a"), list(&[Reply::Integer(1)])])),
        ("return {1, false, 3}", list(&[Reply::Integer(1), Reply::Nil, Reply::Integer(3)])),
        ("return {x = 1}", list(&[])),
        ("return {ok = 'FINE'}", bytes("FINE")),
        ("return redis.call('SET', KEYS[1], 1.5)", bytes("OK")),
        ("redis.call('SET', KEYS[1], 1e20) return redis.call('GET', KEYS[1])", bytes("1e+20")),
        ("return redis.call('GET', KEYS[1])", Reply::Nil),
        ("return type(redis.call('GET', KEYS[1]))", bytes("boolean")),
        ("return {#KEYS, #ARGV, type(ARGV[1])}", list(&[Reply::Integer(1), Reply::Integer(2), bytes("string")])),
        ("return ARGV[2]", Reply::Bytes(b"\xff\0".to_vec())),
        ("return redis.pcall('HLEN', KEYS[1]) + 0.5", Reply::Integer(0)),
        ("return type(redis.pcall('GET'))", bytes("table")),
        ("local ok, e = pcall(redis.call, 'GET') return {tostring(ok), type(e.err)}", {
            list(&[bytes("false"), bytes("string")])
        }),
    ] {
        assert_eq!(eval(source), Ok(reply), "{source}");
    }
}

#[test]
fn errors_have_redis_own_lines() {
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (source, line) in [
        ("redis.call('SET', KEYS[1], 1) redis.call('HLEN', KEYS[1])", wrong_type),
        ("redis.call('SET', KEYS[1], 1) return redis.pcall('HLEN', KEYS[1])", wrong_type),
        ("redis.call('SET', KEYS[1], 1) return {1, redis.pcall('HLEN', KEYS[1])}", wrong_type),
        ("redis.call()", "ERR Please specify at least one argument for this redis.call() call"),
        ("redis.call('GET', {})", "ERR Lua redis lib command arguments must be strings or integers"),
        ("redis.call('GET', nil)", "ERR Lua redis lib command arguments must be strings or integers"),
        ("redis.call('FLUSHALL')", "ERR Unknown Redis command called from script"),
        ("return {err = 'MINE\\nall'}", "MINE all"),
        ("error({err = 'MINE all'})", "MINE all"),
        ("error('x')", "ERR user_script:1: x"),
        ("\nx = 1", "ERR user_script:2: Script attempted to create global variable 'x'"),
        ("return x", "ERR user_script:1: Script attempted to access nonexistent global variable 'x'"),
        ("return print", "ERR user_script:1: Script attempted to access nonexistent global variable 'print'"),
    ] {
        assert_eq!(eval(source), Err(line.to_owned()), "{source}");
    }
    let deep = "local t = {} for _ = 1, 9999 do t = {t} end return t";
    assert_eq!(eval(deep), Err("ERR reached lua stack limit".to_owned()));
    assert!(eval("return (").unwrap_err().starts_with("ERR Error compiling script"));
    // Lua does not check bytecode before it runs it.
    assert!(eval("\u{1b}Lua").unwrap_err().ends_with("attempt to load a binary chunk (mode is 't')"));
}

#[test]
fn a_script_that_raises_keeps_what_it_wrote_as_in_redis() {
    let server = Server::manual();
    server.eval("redis.call('SET', 'a', 1) redis.call('HLEN', 'a')", &[], &[]).unwrap_err();
    assert_eq!(server.dump()[&b"a"[..]], Entry { content: Content::String(b"1".to_vec()), expires: None });
    server.flush_all();
    assert!(server.dump().is_empty());
}

#[test]
fn the_clock_can_be_moved_and_set() {
    let server = Server::manual();
    let start = server.now();
    server.eval("redis.call('SET', 'a', 1, 'PX', 1000)", &[], &[]).unwrap();
    assert_eq!(server.dump()[&b"a"[..]].expires, Some(start + Duration::from_secs(1)));
    server.set_clock(start - Duration::from_secs(5));
    assert_eq!(server.eval("return redis.call('PTTL', 'a')", &[], &[]), Ok(Reply::Integer(6000)));
    server.advance(Duration::from_millis(6001));
    assert_eq!(server.now(), start + Duration::from_millis(1001));
    assert!(server.dump().is_empty());
    assert_eq!(Server::starting_at(Duration::from_secs(7)).now(), Duration::from_secs(7));
}

#[test]
fn the_first_executor_paces_the_clock() {
    let (first, second) = (Arc::new(Still::new()), Arc::new(Still::new()));
    let server = Server::starting_at(Duration::from_secs(100));
    let _one = server.connect(first.clone());
    let _two = server.connect(second.clone());
    first.advance(Duration::from_secs(3));
    second.advance(Duration::from_secs(50));
    assert_eq!(server.now(), Duration::from_secs(103));
    server.set_clock(Duration::from_secs(10));
    first.advance(Duration::from_secs(1));
    server.advance(Duration::from_secs(1));
    assert_eq!(server.now(), Duration::from_secs(12));
}

#[test]
fn messages_come_in_order_to_those_who_listen() {
    let server = Server::manual();
    let publish = |message: &[u8]| {
        let source = "return redis.call('PUBLISH', 'c', ARGV[1])";
        server.eval(source, &[], &[message]).unwrap()
    };
    let connection = server.connect(Arc::new(Still::new()));
    let subscribe = |channel| futures::executor::block_on(connection.subscribe(channel));
    assert_eq!(publish(b"0"), Reply::Integer(0));
    let mut one = subscribe("c").unwrap();
    let two = subscribe("c").unwrap();
    let _other = subscribe("d").unwrap();
    assert_eq!(publish(b"1"), Reply::Integer(2));
    drop(two);
    assert_eq!(publish(b"2"), Reply::Integer(1));
    let next = |stream: &mut futures::stream::BoxStream<'static, Notice>| stream.next().now_or_never();
    assert_eq!(next(&mut one), Some(Some(Notice::Message(b"1".to_vec()))));
    connection.close();
    assert_eq!(publish(b"3"), Reply::Integer(0));
    assert_eq!(next(&mut one), Some(Some(Notice::Message(b"2".to_vec()))));
    assert_eq!(next(&mut one), Some(None));
    assert_eq!(subscribe("c").err(), Some(ConnectionError::Closed));
    let script = crate::Script::all().next().unwrap();
    let call = crate::Call::new(script, &[], &[]);
    assert_eq!(futures::executor::block_on(connection.run(call)), Err(ConnectionError::Closed));
}

#[test]
fn a_watch_tells_of_each_change_of_the_keys_that_begin_alike() {
    let server = Server::manual();
    let connection = server.connect(Arc::new(Still::new()));
    let watch = || {
        let watched = connection.watch_key("a", "inbox");
        futures::executor::block_on(watched).unwrap()
    };
    let (mut one, other) = (watch(), watch());
    let mut told = || {
        let mut told = 0;
        while let Some(notice) = one.next().now_or_never() {
            assert_eq!(notice, Some(Notice::Message(Vec::new())));
            told += 1;
        }
        told
    };
    let eval = |source: &str, key: &[u8]| server.eval(source, &[key], &[]).unwrap();
    for (source, key, expected) in [
        ("return redis.call('SET', KEYS[1], 1, 'PX', 1000)", &b"a"[..], 1),
        ("redis.call('SET', KEYS[1], 1) return redis.call('SET', KEYS[1], 2)", b"ab", 1),
        ("return redis.call('SET', KEYS[1], 1)", b"b", 0),
        ("return redis.call('GET', KEYS[1])", b"a", 0),
        ("return redis.call('UNLINK', KEYS[1])", b"ab", 1),
    ] {
        eval(source, key);
        assert_eq!(told(), expected, "{source}");
    }
    // Expired keys go at the next script.
    server.advance(Duration::from_secs(2));
    assert_eq!(told(), 0);
    eval("return redis.call('GET', KEYS[1])", b"b");
    assert_eq!(told(), 1);
    server.flush_all();
    assert_eq!(told(), 1);
    drop(other);
    eval("return redis.call('SET', KEYS[1], 1)", b"a");
    assert_eq!(told(), 1);
    connection.close();
    assert_eq!(one.next().now_or_never(), Some(None));
}

/// An executor may poll a task right in its waker.
#[test]
fn a_task_that_is_woken_may_use_the_connection_at_once() {
    struct Uses(Mutex<Option<Arc<dyn Connection>>>, AtomicBool);

    impl Wake for Uses {
        fn wake(self: Arc<Self>) {
            let connection = lock(&self.0).take().unwrap();
            connection.close();
            self.1.store(true, Ordering::SeqCst);
        }
    }

    let server = Server::manual();
    let connection: Arc<dyn Connection> = Arc::new(server.connect(Arc::new(Still::new())));
    let mut notices = futures::executor::block_on(connection.watch_key("a", "inbox")).unwrap();
    let uses = Arc::new(Uses(Mutex::new(Some(connection.clone())), AtomicBool::new(false)));
    let waker = Waker::from(uses.clone());
    assert!(notices.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    let script = crate::Script::all().find(|script| script.name() == "rate_take").unwrap();
    let args = ["1000", "1000", "1000000", "0"].map(crate::Arg::Text);
    drop(futures::executor::block_on(connection.run(crate::Call::new(script, &["a"], &args))).unwrap());
    assert!(uses.1.load(Ordering::SeqCst), "it is woken");
}

/// The connection keeps the last reference to a task whose stream was dropped, until the next subscription.
#[test]
fn a_task_that_is_dropped_with_its_subscription_may_use_the_connection() {
    struct Closes(Arc<dyn Connection>);

    impl Wake for Closes {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Closes {
        fn drop(&mut self) {
            self.0.close();
        }
    }

    let server = Server::manual();
    let connection: Arc<dyn Connection> = Arc::new(server.connect(Arc::new(Still::new())));
    let subscribe = |channel| futures::executor::block_on(connection.subscribe(channel));
    let mut notices = subscribe("c").unwrap();
    let waker = Waker::from(Arc::new(Closes(connection.clone())));
    assert!(notices.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    drop((notices, waker));
    drop(subscribe("d"));
    assert_eq!(subscribe("e").err(), Some(ConnectionError::Closed));
}

/// In unit tests, this server spells them as Redis 7.2.0 does.
#[test]
fn times_are_integers_to_commands_however_numbers_of_lua_are_spelled() {
    const CALLS: [(&str, &str, &str); 8] = [
        ("lock_acquire", "l q t f", "c:1 try 50000000 1 1000 0 0 i 0"),
        ("permit_acquire", "x xl xq xt xf", "c:1r try 50000000 1048576 1048576 1000 0 0 i 0"),
        ("permit_acquire", "r rl rq rt rf", "c:2 try 50000000 1 1048576 1000 0 0 i 0"),
        ("once_begin", "o oq ot of", "c:3 50000000 100000000 0 0 0"),
        ("lock_vote", "v vf", "c:1 50000000 5 c:1 0 0 s/1/3 0"),
        ("election_renew", "l e", "c:1 50000000 50000000 0"),
        ("election_announce", "l w e", "c:1 TERM led 1 label value i"),
        ("latch_set", "d dt dc", "c:1 3 100000000 0 60000 0 i"),
    ];
    fn split(words: &str) -> Vec<&[u8]> {
        words.split(' ').map(str::as_bytes).collect()
    }

    let server = Server::manual();
    let mut term = String::new();
    for (name, keys, args) in CALLS {
        let script = crate::Script::all().find(|script| script.name() == name).unwrap();
        let args = args.replace("TERM", &term);
        let reply = server.eval(script.source(), &split(keys), &split(&args));
        if let (Ok(Reply::Integer(token)), "lock_acquire") = (&reply, name) {
            term = token.to_string();
        }
        assert!(reply.is_ok(), "{name}: {reply:?}");
    }
    let refused = server.eval("return redis.call('PEXPIRE', KEYS[1], 100000000)", &[b"l"], &[]);
    assert!(refused.unwrap_err().to_string().contains("not an integer"));
}
