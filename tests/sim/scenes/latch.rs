//! Scenes about calls of latches of which several copies are under way.

use crate::network::COMMAND_TIMEOUT;
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// A `try_set` is refused, but its first copy is still under way when the latch has been counted down.
pub async fn refused_set(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (latch, of_other) = (stage.client(process).latch(NAME), stage.client(other).latch(NAME));
    of_other.try_set(1, LONG).await.unwrap();
    let setting = stage.spawn(process, async move { latch.try_set(5, LONG).await });
    // The request is sent but has not arrived.
    stage.sleep(MS / 20).await;
    stage.link(process).cut(true, false, 10 * MS);
    must(!setting.await.unwrap(), "I10 a latch was set over another")?;
    of_other.count_down().await.unwrap();
    // No copy arrives later than that.
    stage.sleep(7000 * MS).await;
    must(of_other.count().await.unwrap() == 0, "I10 a refused call took effect")
}

/// A `count_down` finds no latch, but its first copy is still under way when one is set.
pub async fn idle_count(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (latch, of_other) = (stage.client(process).latch(NAME), stage.client(other).latch(NAME));
    let counting = stage.spawn(process, async move { latch.count_down().await });
    stage.sleep(MS / 20).await;
    stage.link(process).cut(true, false, 10 * MS);
    must(counting.await.unwrap() == 0, "I10 there was nothing to count")?;
    of_other.try_set(3, LONG).await.unwrap();
    stage.sleep(7000 * MS).await;
    must(of_other.count().await.unwrap() == 3, "I10 a call that had its answer counted on the next latch")
}

/// The answer to a `count_down` is lost, and the server cannot be reached until no first copy may come any more.
pub async fn later_copy(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (latch, of_other) = (stage.client(process).latch(NAME), stage.client(other).latch(NAME));
    of_other.try_set(3, LONG).await.unwrap();
    stage.link(process).silence();
    let counting = stage.spawn(process, async move { latch.count_down().await });
    while of_other.count().await.unwrap() == 3 {
        stage.sleep(MS).await;
    }
    stage.link(process).cut(true, false, 4000 * MS);
    must(matches!(counting.await, Ok(2)), "I10 it counted twice, or does not know that it counted")?;
    must(of_other.count().await.unwrap() == 2, "I10 it counted twice")
}

/// The client that opened the latch is gone before all its waiters are told. The next latch of the name is not theirs.
pub async fn rest_of_a_latch(mut stage: Stage) -> Played {
    stage.server.tell_one_at_a_time();
    let (counter, process) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (of_counter, latch) = (stage.client(counter).latch(NAME), stage.client(process).latch(NAME));
    let wait = || {
        let latch = latch.clone();
        stage.spawn(process, async move { latch.wait().await })
    };
    latch.try_set(1, 2 * LONG).await.unwrap();
    let waiting = [wait(), wait(), wait()];
    while latch.inspect().await.unwrap().waiters < 3 {
        stage.sleep(MS).await;
    }
    stage.link(counter).silence();
    let _counting = stage.spawn(counter, async move { of_counter.count_down().await });
    while latch.count().await.unwrap() == 1 {
        stage.sleep(MS).await;
    }
    stage.kill(counter);
    must(latch.try_set(1, LONG).await.unwrap(), "I3 an open latch cannot be set")?;
    let mut next = wait();
    for waiter in waiting {
        let told = stage.within(2 * stage.hop + MS, "I3 a waiter does not hear that its latch was opened", waiter);
        must(told.await?.is_ok(), "I13 a waiter was told that its latch is gone")?;
    }
    let both = stage.within(LONG / 2, "", &mut next).await.is_ok();
    must(!both, "I13 a waiter was told that the next latch is open")?;
    latch.count_down().await.unwrap();
    let told = stage.within(4 * stage.hop + MS, "I3 a waiter does not hear that its latch was opened", next);
    must(told.await?.is_ok(), "I13 a waiter was told that its latch is gone")
}

/// A connection breaks, and the count that it carried is executed when it has long been given up.
pub async fn late_count(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (latch, of_other) = (stage.client(process).latch(NAME), stage.client(other).latch(NAME));
    of_other.try_set(3, LONG).await.unwrap();
    let counting = stage.spawn(process, async move { latch.count_down().await });
    // The request is sent but has not arrived.
    stage.sleep(MS / 20).await;
    stage.kill(process);
    drop(counting);
    // The client's estimate of the server's clock may be wrong by a tenth of a second.
    stage.sleep(COMMAND_TIMEOUT + 200 * MS + 2 * stage.hop).await;
    let left = of_other.count().await.unwrap();
    stage.sleep(7000 * MS).await;
    must(of_other.count().await.unwrap() == left, "I10 a count was executed long after it was given up")
}
