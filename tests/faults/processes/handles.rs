//! A hold that one process leaves and another one takes over, while the first one goes on, stands still or is killed.

use bowline::{Client, HoldHandle, Holder};
use rustix::process::Signal;

use super::ms;
use super::process::Process;
use super::roles::{listen, say};
use crate::support::adapters::bounded;
use crate::support::server::Server;

/// Leaves its hold, and keeps a second guard of it, so that it goes on renewing until it is told otherwise.
pub(crate) async fn leave(client: &Client) {
    let holder = Holder::new();
    let lock = client.lock("a");
    let kept = lock.lock().holder(&holder).await.unwrap();
    let left = lock.lock().holder(&holder).await.unwrap();
    say(&format!("granted {}", kept.token()));
    say(&format!("handle {}", left.into_handle().unwrap().to_secret()));
    say(&format!("lost {:?}", kept.lost().await));
    drop(kept);
    client.close().await;
}

/// Takes over the hold that it is told of, and holds until told to release.
pub(crate) async fn resume(client: &Client) {
    say("ready");
    let secret = tokio::task::spawn_blocking(listen).await.unwrap();
    let handle = HoldHandle::from_secret(&secret).unwrap();
    match client.lock("a").resume(&handle).await {
        Ok(guard) => {
            say(&format!("granted {}", guard.token()));
            assert_eq!(tokio::task::spawn_blocking(listen).await.unwrap(), "release");
            say(&format!("released {:?}", guard.release().await.map_err(|error| error.kind())));
        }
        Err(error) => say(&format!("refused {:?}", error.kind())),
    }
    client.close().await;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    GoesOn,
    StandsStill,
    Dies,
}

#[test]
fn a_hold_has_one_owner_whatever_becomes_of_the_process_that_left_it() {
    bounded(|| {
        for fate in [Fate::GoesOn, Fate::StandsStill, Fate::Dies] {
            let server = Server::start();
            // The hold of one that does not renew must last until it is resumed, also on a slow machine.
            let lease = ms(6_000);
            let mut resumers: Vec<Process> = (0..2).map(|_| Process::with(&server, "resumer", lease)).collect();
            for resumer in &resumers {
                resumer.hear("ready");
            }
            let mut leaver = Process::with(&server, "leaver", lease);
            let first = leaver.hear_token();
            let secret = leaver.hear("handle");
            match fate {
                Fate::GoesOn => {}
                Fate::StandsStill => leaver.signal(Signal::STOP),
                Fate::Dies => leaver.kill(),
            }
            resumers[0].tell(&secret);
            let second = resumers[0].hear_token();
            assert!(second > first, "{fate:?}");
            resumers[1].tell(&secret);
            assert_eq!(resumers[1].hear("refused"), "Lost", "{fate:?}");
            if fate == Fate::StandsStill {
                leaver.signal(Signal::CONT);
            }
            if fate != Fate::Dies {
                let loss = leaver.hear("lost");
                assert!(["Gone", "Expired"].contains(&&*loss), "{fate:?}: {loss}");
                leaver.finish();
            }
            // Nothing that the first process sent has ended the hold of the second one.
            resumers[0].tell("release");
            assert_eq!(resumers[0].hear("released"), "Ok(())", "{fate:?}");
            resumers.into_iter().for_each(Process::finish);
            assert_eq!(server.keys(), ["bowline:lock:{a}:fence"], "{fate:?}");
        }
    });
}
