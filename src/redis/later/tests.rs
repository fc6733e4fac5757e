use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::lab::{Lab, Tasks};
use super::*;
use crate::connection::{Call, ConnectionError};
use crate::error::{Error, ErrorKind};
use crate::protocol::Script;

/// No attempt succeeds.
#[test]
fn the_attempts_end_when_it_is_dropped() {
    let (lab, mut tasks) = (Lab::new(&[], 1), Tasks::new());
    let (executor, attempts): (Arc<dyn Executor>, _) = (lab.clone(), Arc::new(AtomicUsize::new(0)));
    let config = Config::default();
    let counted = Arc::clone(&attempts);
    let background = InBackground::start(&executor, "h:1".to_owned(), &config, 7, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(Error::because(ErrorKind::Unavailable, "connect", "by the test")) })
    });
    let began = lab.now();
    let called = background.run(Call::new(Script::all().next().unwrap(), &["a"], &[]));
    let failed = lab.run(&mut tasks, called).unwrap_err();
    assert!(matches!(&failed, ConnectionError::Unreachable(why) if why.contains("by the test")), "{failed}");
    assert_eq!(lab.now() - began, config.command_timeout);
    lab.run(&mut tasks, lab.sleep(Duration::from_secs(60)));
    let made = attempts.load(Ordering::SeqCst);
    assert!((60..120).contains(&made), "about one in 800 ms: {made}");
    let later = Arc::clone(&background.later);
    drop(background);
    lab.run(&mut tasks, lab.sleep(Duration::from_secs(60)));
    assert_eq!(attempts.load(Ordering::SeqCst), made);
    assert_eq!(later.missing(), Some(ConnectionError::Closed));
    assert!(tasks.is_empty());
}
