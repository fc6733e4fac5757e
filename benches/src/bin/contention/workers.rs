//! A child: its tasks take the lock again and again until the time is over, and tell what they got.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Connection, Executor, Held, Lock, RwLock, Semaphore};
use bowline_benches::bare::{BareConnection, ScriptCall};
use bowline_benches::measure::Samples;
use bowline_benches::raw::RawLock;
use bowline_benches::runtime::Runtime;
use bowline_benches::watched::Seen;
use bowline_benches::{Result, child};
use bowline_testkit::watched::Watched;
use tokio::sync::Mutex;

use crate::case::{Case, Kind};

/// The name that all want.
const NAME: &str = "bench:contended";

pub(crate) fn work(task: &[String]) -> Result<()> {
    let (case, time, url) = Case::from_task(task)?;
    Runtime::TokioMulti.run(|executor| async move {
        let config = Config::default();
        let seen = Arc::<Seen>::default();
        let inner = Runtime::TokioMulti.open(executor.clone(), &url, &config).await?;
        let connection = Arc::new(Watched { inner, watch: seen.clone() });
        let taken = match case.kind {
            Kind::Baseline => Taken::ByHand(Arc::new(ByHand::new(connection)?)),
            Kind::Bare => {
                seen.record();
                ByHand::new(connection)?.once().await?;
                let connection = BareConnection::open(Runtime::TokioMulti, &executor, &url).await?;
                let pair = connection.floor_of(&seen.recorded());
                Taken::Bare(Arc::new(Bare { pair, connection: Mutex::new(connection) }))
            }
            Kind::Local => Taken::Local(Arc::default()),
            Kind::Fair | Kind::NonFair | Kind::Permits | Kind::Writers => {
                let client = Client::connect(executor.clone(), connection, config).await?;
                match case.kind {
                    Kind::Permits => Taken::Permit { semaphore: client.semaphore(NAME, 1), _client: client },
                    Kind::Writers => Taken::Writer { lock: client.rw_lock(NAME), _client: client },
                    kind => Taken::Lock { lock: client.lock(NAME), fair: kind == Kind::Fair, _client: client },
                }
            }
        };
        // The first use sends the source of the scripts.
        taken.once(Duration::ZERO, &executor).await?;
        let before = seen.commands();
        child::ready()?;
        let start = Instant::now();
        let repeat = |_| tokio::spawn(repeat(taken.clone(), case.shape.section, start + time, executor.clone()));
        let tasks: Vec<_> = (0..case.shape.tasks).map(repeat).collect();
        let mut waits = Samples::default();
        for task in tasks {
            let Done { in_time, late, waited } = task.await??;
            println!("task {in_time} {late}");
            waits.extend(waited);
        }
        println!("commands {}", seen.commands() - before);
        println!("waits {}", waits.to_text());
        Ok(())
    })
}

/// What a task got: the last acquisition may end after the time is over.
#[derive(Default)]
struct Done {
    in_time: u64,
    late: u64,
    waited: Samples,
}

async fn repeat(taken: Taken, section: Duration, until: Instant, executor: Arc<dyn Executor>) -> Result<Done> {
    let mut done = Done::default();
    while Instant::now() < until {
        done.waited.add(taken.once(section, &executor).await?);
        if Instant::now() < until { done.in_time += 1 } else { done.late += 1 }
    }
    Ok(done)
}

#[derive(Clone)]
enum Taken {
    Lock { lock: Lock, fair: bool, _client: Client },
    Permit { semaphore: Semaphore, _client: Client },
    Writer { lock: RwLock, _client: Client },
    ByHand(Arc<ByHand>),
    Bare(Arc<Bare>),
    Local(Arc<Mutex<()>>),
}

impl Taken {
    /// Acquires, stays for `section`, releases. Returns how long it waited.
    async fn once(&self, section: Duration, executor: &Arc<dyn Executor>) -> Result<Duration> {
        let start = Instant::now();
        match self {
            Self::Lock { lock, fair, .. } => {
                let acquire = lock.lock();
                let guard = if *fair { acquire.fair() } else { acquire.non_fair() }.await?;
                held(guard, start, section, executor).await
            }
            Self::Permit { semaphore, .. } => {
                held(semaphore.acquire().non_fair().await?, start, section, executor).await
            }
            Self::Writer { lock, .. } => held(lock.write().non_fair().await?, start, section, executor).await,
            Self::Local(mutex) => {
                let guard = mutex.lock().await;
                let waited = start.elapsed();
                stay(section, executor).await;
                drop(guard);
                Ok(waited)
            }
            Self::ByHand(by_hand) => {
                let mut n = by_hand.turn.lock().await;
                *n += 1;
                if !by_hand.raw.acquire(&*by_hand.connection, *n).await? {
                    return Err("the lock was not free".into());
                }
                let waited = start.elapsed();
                stay(section, executor).await;
                by_hand.raw.release(&*by_hand.connection, *n).await?;
                Ok(waited)
            }
            Self::Bare(bare) => {
                let mut connection = bare.connection.lock().await;
                let [acquire, release] = &bare.pair[..] else { return Err("a pair is two commands".into()) };
                connection.run(slice::from_ref(acquire)).await?;
                let waited = start.elapsed();
                stay(section, executor).await;
                connection.run(slice::from_ref(release)).await?;
                Ok(waited)
            }
        }
    }
}

/// Stays with what was asked for at `start`, and releases it. Returns how long the caller waited.
async fn held<G: Held>(guard: G, start: Instant, section: Duration, executor: &Arc<dyn Executor>) -> Result<Duration> {
    let waited = start.elapsed();
    stay(section, executor).await;
    guard.release().await?;
    Ok(waited)
}

async fn stay(section: Duration, executor: &Arc<dyn Executor>) {
    if !section.is_zero() {
        executor.sleep(section).await;
    }
}

/// A local mutex around the two scripts, which find the lock free each time.
struct ByHand {
    connection: Arc<dyn Connection>,
    raw: RawLock,
    /// The number of the last attempt id.
    turn: Mutex<u64>,
}

impl ByHand {
    fn new(connection: Arc<dyn Connection>) -> Result<Self> {
        Ok(Self { connection, raw: RawLock::new(NAME)?, turn: Mutex::new(0) })
    }

    /// One pair, for what it sends.
    async fn once(&self) -> Result<()> {
        if !self.raw.acquire(&*self.connection, 1).await? {
            return Err("the lock was not free".into());
        }
        self.raw.release(&*self.connection, 1).await
    }
}

/// A local mutex around two scripts that do nothing, with the keys and arguments of the lock's.
struct Bare {
    pair: Vec<ScriptCall>,
    connection: Mutex<BareConnection>,
}
