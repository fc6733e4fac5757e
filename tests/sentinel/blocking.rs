//! `connect` of the blocking facade takes the same URLs.

use bowline::ErrorKind;

use crate::scene::is_held_at;
use crate::support::adapters::bounded;
use crate::support::sentinels::Sentinels;

#[test]
fn a_program_without_a_runtime_follows_the_master() {
    bounded(|| {
        let servers = Sentinels::start();
        let client = bowline::blocking::connect(servers.user_url()).unwrap();
        let guard = client.lock("a").lock().block().unwrap();
        assert!(is_held_at(servers.server(0), &guard));
        guard.release().unwrap();
        let promoted = servers.fail_over();
        // The next answer may still come from the old master, which answers until the client learns of the failover.
        loop {
            let guard = client.lock("b").lock().block().unwrap();
            let moved = is_held_at(servers.server(promoted), &guard);
            let released = guard.release();
            if moved {
                released.unwrap();
                break;
            }
            // A grant of the old master may have been lost with it.
            assert!(released.is_ok() || released.is_err_and(|error| error.kind() == ErrorKind::Lost));
        }
        client.close().unwrap();
    });
}
