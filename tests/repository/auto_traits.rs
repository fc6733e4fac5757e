//! What a program may do with every public type and future: send it to another thread, share it, put it behind `dyn`,
//! and poll it through many frames that each have a copy of it.
#![cfg(feature = "tokio")]

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bowline::{
    Acquire, Arg, Call, Client, Config, ConfigBuilder, Connection, ConnectionError, CountDownLatch, Error, ErrorKind,
    Executor, Holder, HolderState, LatchState, LatchWait, Lock, LockGuard, LockState, Loss, LossSignal, MasterState,
    MultiGuard, MultiLock, NamedLoss, Notice, Permit, PermitState, ReadGuard, RedLock, RedLockBuilder, RedLockState,
    RedLockStats, RedisConnection, Reply, RwLock, RwLockState, Script, Semaphore, SemaphoreState, Token, Topology,
    TryAcquire, Upgrade, Warning, WriteGuard,
};
use futures::future::try_join_all;

fn shared<T: Send + Sync>() {}
fn shared_by_reference<T: Sync + Unpin>() {}
fn kept<T: Send + Sync + Unpin + 'static>() {}

/// Bytes of a future. In a debug build block_on of async-std has some sixty copies of it on the stack.
const LARGEST: usize = 2048;

fn sent<T: Send>(future: T) -> T {
    assert!(size_of::<T>() <= LARGEST, "{}: {} bytes", std::any::type_name::<T>(), size_of::<T>());
    future
}

/// Bytes of an acquisition on the heap, which it keeps for as long as it waits.
const LARGEST_WAITING: usize = 1024;

fn kept_small<T: ?Sized>(waiting: &T) {
    let bytes = size_of_val(waiting);
    assert!(bytes <= LARGEST_WAITING, "{bytes} bytes");
}

#[tokio::test]
async fn acquisitions_that_wait_are_small() {
    let client = embedded_client().await;
    let (lock, rw_lock) = (client.lock("a"), client.rw_lock("a"));
    kept_small(&*lock.lock().into_future());
    kept_small(&*lock.lock().non_fair().timeout(Duration::from_secs(1)).into_future());
    kept_small(&*rw_lock.read().into_future());
    kept_small(&*rw_lock.write().into_future());
    kept_small(&*client.semaphore("a", 1).acquire().into_future());
    kept_small(&*client.redisson().semaphore("a").acquire().timeout(Duration::from_secs(1)).into_future());
    kept_small(&*client.redisson().permit_semaphore("a").acquire().timeout(Duration::from_secs(1)).into_future());
    kept_small(&*client.redisson().count_down_latch("a").wait().timeout(Duration::from_secs(1)).into_future());
    kept_small(&*client.rate_limiter("a", bowline::Quota::per(1, Duration::from_secs(1))).until_ready().into_future());
}

#[test]
fn every_type_is_send_and_sync() {
    kept::<(Client, Config, ConfigBuilder, RedisConnection)>();
    kept::<(Lock, RwLock, Semaphore, CountDownLatch, MultiLock)>();
    kept::<(bowline::RateLimiter, bowline::Quota, bowline::Decision, bowline::UntilReady)>();
    kept::<(LockGuard, ReadGuard, WriteGuard, Permit, Upgrade, LossSignal, MultiGuard, NamedLoss)>();
    kept::<(Holder, HolderState, LockState, RwLockState, SemaphoreState, PermitState, LatchState, Token, Loss)>();
    kept::<(bowline::WaiterState, bowline::Access, bowline::Whose, bowline::Revoked)>();
    kept::<(Error, ErrorKind, ConnectionError, Notice, Reply, Script, Topology, Warning)>();
    kept::<(bowline::Redisson, bowline::RedissonLock, bowline::RedissonCountDownLatch)>();
    kept::<(bowline::RedissonSemaphore, bowline::RedissonAcquire, bowline::RedissonPermits)>();
    kept::<(bowline::RedissonPermitSemaphore, bowline::RedissonPermitGuard, bowline::RedissonPermitsState)>();
    kept::<bowline::embedded::Server>();
    kept::<(bowline::testing::Clause, bowline::testing::Report, bowline::testing::Relay)>();
    kept::<bowline::testing::CheckExecutor>();
    kept::<(RedLock, RedLockBuilder, RedLockState, MasterState, RedLockStats)>();
    shared::<(Call<'_>, Arg<'_>)>();
    kept::<(Acquire<LockGuard>, Acquire<ReadGuard>, Acquire<WriteGuard>, Acquire<Permit>)>();
    kept::<(TryAcquire<LockGuard>, TryAcquire<ReadGuard>, TryAcquire<WriteGuard>, TryAcquire<Permit>)>();
    kept::<(LatchWait, Acquire<MultiGuard>, TryAcquire<MultiGuard>)>();
    kept::<(Arc<dyn Executor>, Arc<dyn Connection>)>();
}

/// `A` is ambiguous, and this does not compile, if the type is `Send`.
trait NotSend<A> {
    fn stays() {}
}
impl<T: ?Sized> NotSend<()> for T {}
impl<T: ?Sized + Send> NotSend<u8> for T {}

#[test]
fn blocking_guards_of_a_thread_stay_on_it() {
    use bowline::blocking::{self, AnyThread};

    <blocking::LockGuard as NotSend<_>>::stays();
    <blocking::ReadGuard as NotSend<_>>::stays();
    <blocking::WriteGuard as NotSend<_>>::stays();
    <blocking::Upgrade as NotSend<_>>::stays();
    <blocking::Acquire as NotSend<_>>::stays();
    <blocking::TryAcquire<WriteGuard> as NotSend<_>>::stays();
    <blocking::Acquire<MultiGuard> as NotSend<_>>::stays();
    <blocking::MultiGuard as NotSend<_>>::stays();
    shared_by_reference::<(blocking::LockGuard, blocking::ReadGuard, blocking::WriteGuard, blocking::Upgrade)>();
    shared_by_reference::<(blocking::Acquire, blocking::TryAcquire)>();

    kept::<(blocking::LockGuard<AnyThread>, blocking::ReadGuard<AnyThread>, blocking::WriteGuard<AnyThread>)>();
    kept::<(blocking::Permit, blocking::Upgrade<AnyThread>, blocking::MultiGuard<AnyThread>)>();
    kept::<(blocking::Client, blocking::Lock, blocking::RwLock, blocking::Semaphore, blocking::CountDownLatch)>();
    kept::<(blocking::MultiLock, blocking::RedLock, blocking::RedLockBuilder)>();
    kept::<(blocking::Acquire<LockGuard, AnyThread>, blocking::TryAcquire<ReadGuard, AnyThread>)>();
    kept::<(blocking::RedissonCountDownLatch, blocking::RedissonSemaphore, blocking::RedissonPermits)>();
    kept::<(blocking::RedissonPermitSemaphore, blocking::RedissonPermitGuard)>();
    kept::<(blocking::Acquire<Permit, AnyThread>, blocking::LatchWait)>();
}

#[tokio::test]
async fn every_future_is_send_and_small() {
    let executor: Arc<dyn Executor> = Arc::new(bowline::tokio::Tokio::current().unwrap());
    let connection = Arc::new(bowline::embedded::Server::new().connect(executor.clone()));
    let config = Config::default();
    let url = "redis://localhost";
    drop(sent(bowline::tokio::connect(url)));
    drop(sent(bowline::tokio::connect_with(url, config.clone())));
    drop(sent(bowline::tokio::open(executor.clone(), url, &config)));
    let client = sent(Client::connect(executor, connection, config)).await.unwrap();
    let (lock, rw_lock, semaphore) = (client.lock("a"), client.rw_lock("a"), client.semaphore("a", 1));
    sent(Holder::new().scope(sent(async {}))).await;

    let guard = sent(lock.lock().into_future()).await.unwrap();
    drop(sent(lock.try_lock().into_future()));
    drop(sent(lock.lock().run(|_| async {})));
    drop(sent(lock.try_lock().run(|guard| async move { guard.token() })));
    let red_lock = {
        let server = bowline::embedded::Server::new;
        let tokio = || bowline::tokio::Tokio::current().unwrap();
        RedLock::new([client.clone(), server().client(tokio()).await.unwrap(), server().client(tokio()).await.unwrap()])
    }
    .unwrap();
    drop(sent(red_lock.lock("b").into_future()));
    drop(sent(red_lock.try_lock("b").into_future()));
    drop(sent(red_lock.inspect("b")));
    drop(sent(lock.inspect()));
    drop(sent(lock.force_release()));
    drop(sent(guard.lost()));
    drop(sent(guard.lost_signal().wait()));
    drop(sent(guard.extend(Duration::from_secs(1))));
    drop(sent(guard.protect(async {})));
    drop(sent(guard.release()));

    let reading = sent(rw_lock.read().into_future()).await.unwrap();
    drop(sent(rw_lock.try_read().into_future()));
    drop(sent(rw_lock.try_write().into_future()));
    drop(sent(rw_lock.read().run(|guard| async move { guard.token() })));
    drop(sent(rw_lock.try_write().run(|guard| async move { guard.token() })));
    drop(sent(rw_lock.inspect()));
    drop(sent(reading.lost()));
    drop(sent(reading.protect(async {})));
    let Upgrade::Writing(writing) = sent(reading.try_upgrade()).await.unwrap() else {
        panic!("there is no other reader")
    };
    drop(sent(writing.lost()));
    drop(sent(writing.protect(async {})));
    drop(sent(writing.release()));
    let writing = sent(rw_lock.write().into_future()).await.unwrap();
    let reading = sent(writing.downgrade()).await.unwrap();
    drop(sent(reading.release()));

    let permit = sent(semaphore.acquire_many(1).into_future()).await.unwrap();
    drop(sent(semaphore.acquire().into_future()));
    drop(sent(semaphore.try_acquire().into_future()));
    drop(sent(semaphore.try_acquire_many(1).into_future()));
    drop(sent(semaphore.acquire().run(|permit| async move { permit.count() })));
    drop(sent(semaphore.available()));
    drop(sent(semaphore.inspect()));
    drop(sent(semaphore.set_limit(1)));
    drop(sent(permit.lost()));
    drop(sent(permit.protect(async {})));
    drop(sent(permit.release()));

    let all = client.lock_all(["a", "b"]);
    let guard = sent(all.acquire().into_future()).await.unwrap();
    drop(sent(all.try_acquire().into_future()));
    drop(sent(all.acquire().run(|guard| async move { guard.is_valid() })));
    drop(sent(all.try_acquire().run(|guard| async move { guard.is_valid() })));
    drop(sent(guard.lost()));
    drop(sent(guard.lost_signal().wait()));
    drop(sent(guard.extend(Duration::from_secs(1))));
    drop(sent(guard.protect(async {})));
    drop(sent(guard.release()));

    let once = client.once("a", Duration::from_secs(60));
    drop(sent(once.run(|run| async move { run.tick() })));
    drop(sent(once.try_run(|run| async move { run.is_valid().then_some(()).ok_or(run) })));
    drop(sent(once.inspect()));

    let election = client.election("a");
    let led = sent(election.campaign().into_future()).await.unwrap();
    drop(sent(election.try_campaign()));
    drop(sent(election.lead(|term| async move { term.token() })));
    drop(sent(election.leader()));
    drop(sent(election.changes()));
    drop(sent(led.lost()));
    drop(sent(led.protect(async {})));
    drop(sent(led.publish("x")));
    drop(sent(led.resign()));
    let limiter = client.rate_limiter("a", bowline::Quota::per(1, Duration::from_secs(60)));
    drop(sent(limiter.check()));
    drop(sent(limiter.check_n(1)));
    drop(sent(limiter.until_ready().timeout(Duration::from_secs(1)).into_future()));
    drop(sent(limiter.inspect()));
    drop(sent(limiter.reset()));

    let latch = client.latch("a");
    drop(sent(latch.try_set(1, Duration::from_secs(1))));
    drop(sent(latch.count_down()));
    drop(sent(latch.count()));
    drop(sent(latch.wait().into_future()));
    drop(sent(latch.inspect()));
    drop(sent(latch.delete()));
    let latch = client.redisson().count_down_latch("a");
    drop(sent(latch.try_set_count(1)));
    drop(sent(latch.count_down()));
    let semaphore = client.redisson().semaphore("a");
    drop(sent(semaphore.try_set_permits(1)));
    drop(sent(semaphore.try_acquire()));
    drop(sent(semaphore.drain()));
    drop(sent(semaphore.add_permits(1)));
    drop(sent(semaphore.acquire().into_future()));
    let semaphore = client.redisson().permit_semaphore("a");
    drop(sent(semaphore.set_permits(1)));
    drop(sent(semaphore.try_acquire().into_future()));
    drop(sent(semaphore.inspect()));
    drop(sent(semaphore.release_id("")));

    // The future stays small even if the work is large.
    async fn large<T>(_: T) -> usize {
        let room = [0_u8; 10 * LARGEST];
        tokio::task::yield_now().await;
        room.len()
    }
    drop(sent(lock.lock().run(large)));
    drop(sent(client.close()));
    assert_eq!(sent(client.scope(large)).await, 10 * LARGEST);
}

async fn embedded_client() -> Client {
    let executor: Arc<dyn Executor> = Arc::new(bowline::tokio::Tokio::current().unwrap());
    let connection = Arc::new(bowline::embedded::Server::new().connect(executor.clone()));
    Client::connect(executor, connection, Config::builder().build().unwrap()).await.unwrap()
}

/// A builder outlives the handle that made it, and its future is spawned as it is.
#[tokio::test]
async fn builders_own_what_they_need() {
    let client = embedded_client().await;
    let limit = Duration::from_secs(10);

    let acquire = client.lock("a").lock().timeout(limit);
    let guard = acquire.await.unwrap();
    let attempt = client.lock("a").try_lock();
    assert!(attempt.await.unwrap().is_none());
    guard.release().await.unwrap();

    let waits = tokio::spawn(client.latch("none").wait().timeout(limit).into_future());
    let locked = tokio::spawn(client.lock("b").lock().into_future());
    let tried = tokio::spawn(client.rw_lock("b").try_write().into_future());
    let ran = tokio::spawn(client.semaphore("b", 3).acquire_many(2).run(|permit| async move { permit.count() }));
    waits.await.unwrap().unwrap();
    assert!(locked.await.unwrap().unwrap().is_valid());
    assert!(tried.await.unwrap().unwrap().is_some());
    assert_eq!(ran.await.unwrap().unwrap(), 2);
    let all = tokio::spawn(client.lock_all(["c", "d"]).acquire().into_future());
    assert!(all.await.unwrap().unwrap().is_valid());

    let names = ["x", "y", "z"];
    let all = try_join_all(names.map(|name| client.lock(name).lock().into_future())).await.unwrap();
    assert_eq!(all.iter().map(LockGuard::name).collect::<Vec<_>>(), names);
}

/// So do those of the blocking API.
#[test]
fn blocking_builders_own_what_they_need() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = bowline::blocking::Client::new(runtime.block_on(embedded_client()));
    let acquire = client.lock("a").lock().holder(&Holder::new()).timeout(Duration::from_secs(10));
    let guard = std::thread::spawn(move || acquire.block().unwrap()).join().unwrap();
    let attempt = client.lock("a").try_lock();
    assert!(attempt.block().unwrap().is_none());
    guard.release().unwrap();
    let wait = client.latch("none").wait();
    std::thread::spawn(move || wait.block().unwrap()).join().unwrap();
}
