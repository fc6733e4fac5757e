//! A server that says no, for a while or for ever, and one that says what it never says.

use bowline::{ErrorKind, Loss, Reply};
use futures::future::join_all;

use crate::faulty::{Fault, faulty_client};
use crate::scene::{SLACK, acquiring, assert_holds, drop_when, is_free, ms, until_free, until_waiting, waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    refusals_that_pass_are_not_noticed,
    refusals_that_stay_are_errors_within_the_retry_timeout,
    refusals_that_cannot_pass_are_errors_at_once,
    replies_that_no_script_gives_are_errors,
}

/// What servers say when they cannot do now what they can do later.
const PASSING: [&str; 11] = [
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOREPLICAS Not enough good replicas to write.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
];

/// The name of a lock of its own for each error line.
fn name(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

async fn refusals_that_pass_are_not_noticed(env: Env) {
    let other = env.client().await;
    join_all(PASSING.iter().map(async |line| {
        let (name, no) = (name(line), || [Fault::Refuse(line)]);
        let (client, faults) = faulty_client(&env, |config| config.lease(ms(6000))).await;
        let lock = client.lock(name);
        faults.next("lock_acquire", no());
        let guard = lock.lock().await.unwrap();
        faults.next("lock_renew", no());
        faults.gap();
        env.eventually("it is renewed", async || faults.answered("lock_renew") >= 2).await;
        assert_holds(&env, &guard);
        faults.next("lock_release", no());
        guard.release().await.unwrap();
        assert!(is_free(&env, name));

        faults.next("lock_acquire", no());
        let guard = lock.try_lock().await.unwrap().expect("free");
        faults.next("lock_inspect", no());
        assert!(lock.inspect().await.unwrap().holder.is_some());
        faults.next("lock_cancel", no());
        drop(guard);
        until_free(&env, name).await;

        let held = other.lock(name).lock().await.unwrap();
        faults.next("lock_heartbeat", no());
        let acquires = faults.answered("lock_acquire");
        let waiter = acquiring(&env, &client, name);
        env.eventually("it waits", async || faults.answered("lock_acquire") == acquires + 1).await;
        faults.gap();
        env.eventually("it is heartbeat_reply", async || faults.answered("lock_heartbeat") >= 2).await;
        assert_eq!(waiting(&env, name), 1);
        faults.next("lock_force_release", no());
        let fencing = lock.force_release().await.unwrap().expect("it was held");
        assert_eq!(env.soon("the revocation", held.lost()).await, Loss::Revoked);
        let guard = env.soon("the waiter", waiter).await.unwrap();
        assert!(guard.token() > fencing && fencing > held.token());
        guard.release().await.unwrap();
    }))
    .await;
}

async fn refusals_that_stay_are_errors_within_the_retry_timeout(env: Env) {
    // Long enough for the answer to one request on a busy machine.
    let (retry_timeout, lease) = (ms(1000), ms(1500));
    join_all(PASSING.iter().map(async |line| {
        let name = name(line);
        let (client, faults) = faulty_client(&env, |config| config.lease(lease).retry_timeout(retry_timeout)).await;
        let lock = client.lock(name);
        let guard = lock.lock().await.unwrap();
        for script in ["lock_acquire", "lock_release", "lock_renew", "lock_cancel", "lock_inspect"] {
            faults.always(script, Fault::Refuse(line));
        }
        let start = env.now();
        let (locked, tried, inspected, taken, released) = futures::join!(
            lock.lock().into_future(),
            lock.try_lock().into_future(),
            lock.inspect(),
            lock.force_release(),
            async {
                assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Expired);
                guard.release().await
            },
        );
        let took = env.now() - start;
        assert!(took >= retry_timeout && took < lease + SLACK, "{took:?}");
        for error in [locked.err(), tried.err(), inspected.err(), taken.err()] {
            let error = error.expect("refused");
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(format!("{error:#}").contains(name), "{error:#}");
        }
        assert_eq!(released.unwrap_err().kind(), ErrorKind::Lost);
        until_free(&env, name).await;
    }))
    .await;
}

async fn refusals_that_cannot_pass_are_errors_at_once(env: Env) {
    let other = env.client().await;
    let lines = [
        ("NOPERM this user has no permissions to run the 'evalsha' command", ErrorKind::Denied),
        ("ERR The user executing the script can't run this command or subcommand script: a", ErrorKind::Denied),
        ("NOAUTH Authentication required.", ErrorKind::Denied),
        ("DENIED Redis is running in protected mode because", ErrorKind::Denied),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", ErrorKind::WrongType),
        ("ERR unknown command 'EVALSHA', with args beginning with: ", ErrorKind::Unsupported),
        ("ERR Unknown Redis command called from script", ErrorKind::Unsupported),
        ("ERR syntax error", ErrorKind::Protocol),
    ];
    join_all(lines.into_iter().map(async |(line, kind)| {
        let (client, faults) = faulty_client(&env, |config| config).await;
        let lock = client.lock(line);
        let calls = |script| faults.calls(script);
        let (acquires, releases) = (calls("lock_acquire"), calls("lock_release"));
        faults.next("lock_acquire", [Fault::Refuse(line), Fault::Refuse(line)]);
        assert_eq!(lock.lock().await.unwrap_err().kind(), kind, "{line}");
        let error = lock.try_lock().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{line}");
        // The keys have the right types, or are not there.
        let names_all = format!("{error:#}").contains("one of these keys");
        assert_eq!(names_all, kind == ErrorKind::WrongType, "{error:#}");
        assert_eq!(calls("lock_acquire"), acquires + 2, "{line}");

        let guard = lock.lock().await.unwrap();
        faults.next("lock_release", [Fault::Refuse(line)]);
        assert_eq!(guard.release().await.unwrap_err().kind(), kind, "{line}");
        assert_eq!(calls("lock_release"), releases + 1, "{line}");
        until_free(&env, line).await;

        let held = other.lock(line).lock().await.unwrap();
        let heartbeats = calls("lock_heartbeat");
        faults.next("lock_heartbeat", [Fault::Refuse(line)]);
        let waiter = acquiring(&env, &client, line);
        env.eventually("it waits", async || faults.answered("lock_acquire") == acquires + 4).await;
        faults.gap();
        assert_eq!(env.soon("the waiter", waiter).await.unwrap_err().kind(), kind, "{line}");
        assert_eq!(calls("lock_heartbeat"), heartbeats + 1, "{line}");
        until_waiting(&env, line, 0).await;

        // A clean-up that can never succeed is not tried again, unless the server names the attempt.
        let (short, faults) = faulty_client(&env, |config| config.lease(ms(400))).await;
        let short = short.lock(line);
        faults.next("lock_cancel", [Fault::Refuse(line)]);
        drop_when(&env, "a ticket", short.lock(), async || waiting(&env, line) == 1).await;
        env.eventually("the cancel", async || faults.answered("lock_cancel") == 1).await;
        held.release().await.unwrap();
        // The ticket without an owner is granted, and ended then.
        until_free(&env, line).await;
        assert_eq!(faults.calls("lock_cancel"), 2, "{line}");
        assert_eq!(faults.calls("client_types"), 0, "{line}: no one is told");
    }))
    .await;
}

async fn replies_that_no_script_gives_are_errors(env: Env) {
    let word = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    let other = env.client().await;
    let replies = [
        Reply::Nil,
        Reply::Integer(-1),
        word("GRANTED"),
        Reply::Array(Vec::new()),
        Reply::Array(vec![word("GRANTED")]),
        Reply::Array(vec![word("GRANTED"), word("not a number"), Reply::Integer(1)]),
        Reply::Array(vec![word("GRANTED"), word("99999999999999999"), Reply::Integer(1)]),
        Reply::Array(vec![Reply::Bytes(vec![0xff]), Reply::Integer(-1), Reply::Integer(-1)]),
        Reply::Array(vec![Reply::Array(vec![Reply::Nil])]),
        Reply::Array(vec![Reply::Integer(i64::MIN); 5]),
    ];
    join_all(replies.into_iter().map(async |reply| {
        let (client, faults) = faulty_client(&env, |config| config).await;
        let name = &*format!("{reply:?}");
        let lock = client.lock(name);
        let no = || [Fault::Answer(reply.clone())];
        faults.next("lock_acquire", no());
        assert_eq!(lock.lock().await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");
        faults.next("lock_acquire", no());
        assert_eq!(lock.try_lock().await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");
        faults.next("lock_inspect", no());
        assert_eq!(lock.inspect().await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");

        let guard = lock.lock().await.unwrap();
        faults.next("lock_force_release", no());
        assert_eq!(lock.force_release().await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");
        // The refusal does not mean that the hold is lost. A renewal may report that later.
        let renewals = faults.answered("lock_renew");
        faults.next("lock_renew", no());
        faults.gap();
        env.eventually("it is told nonsense", async || faults.answered("lock_renew") > renewals).await;
        faults.gap();
        env.eventually("it is renewed", async || faults.answered("lock_renew") > renewals + 1).await;
        assert_holds(&env, &guard);
        faults.next("lock_release", no());
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");
        until_free(&env, name).await;

        let held = other.lock(name).lock().await.unwrap();
        faults.next("lock_heartbeat", no());
        let acquires = faults.answered("lock_acquire");
        let waiter = acquiring(&env, &client, name);
        env.eventually("it waits", async || faults.answered("lock_acquire") > acquires).await;
        faults.gap();
        assert_eq!(env.soon("the waiter", waiter).await.unwrap_err().kind(), ErrorKind::Protocol, "{reply:?}");
        until_waiting(&env, name, 0).await;
        held.release().await.unwrap();
    }))
    .await;
}
