//! Messages of the inbox that are lost, late, double or not ours.

use bowline::Notice;

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::{
    SLACK, acquiring, assert_holds, contended, holders, is_free, ms, stored_token, until_free, until_waiting, waiting,
};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_grant_whose_message_is_lost_is_found_by_the_next_heartbeat,
    a_message_after_its_grant_was_learned_is_ignored,
    a_message_that_overtakes_the_answer_is_enough,
    a_message_older_than_half_the_lease_is_checked,
    a_message_of_a_grant_that_expired_is_not_believed_after_a_resend,
    a_gap_before_the_answer_is_asked_about,
    noise_on_the_channel_changes_nothing,
}

async fn a_grant_whose_message_is_lost_is_found_by_the_next_heartbeat(env: Env) {
    let other = env.client().await;
    let ttl = ms(3000);
    let (client, faults) = faulty_client(&env, |config| config.lease(ttl)).await;
    faults.messages(Messages::Swallow);
    let held = other.lock("a").lock().await.unwrap();
    let waiter = acquiring(&env, &client, "a");
    env.eventually("it waits", async || faults.answered("lock_acquire") == 1).await;
    let token = held.token();
    held.release().await.unwrap();
    env.eventually("the message", async || faults.swallowed() == 1).await;
    let start = env.now();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    let took = env.now() - start;
    assert!(took < ttl / 3 + ms(1000), "{took:?}");
    assert!(guard.token() > token);
    assert_holds(&env, &guard);
    assert_eq!(faults.calls("lock_acquire"), 1);
    guard.release().await.unwrap();
}

/// The request has queued up, and its grant's message is missed, before the client knows that it waits.
async fn a_gap_before_the_answer_is_asked_about(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let kept = client.lock("b").lock().await.unwrap();
    faults.messages(Messages::Swallow);
    faults.next("lock_acquire", [Fault::HangReply]);
    let (held, waiter) = contended(&env, &other, &client).await;
    held.release().await.unwrap();
    env.eventually("the message", async || faults.swallowed() == 1).await;
    // A renewal shows that the client has noticed the gap.
    let renewals = faults.answered("lock_renew");
    faults.gap();
    env.eventually("a renewal", async || faults.answered("lock_renew") > renewals).await;
    assert_eq!(faults.calls("lock_heartbeat"), 0);

    let start = env.now();
    faults.release();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(env.now() - start < SLACK, "not a third of the lease later");
    assert_holds(&env, &guard);
    assert_eq!(faults.calls("lock_heartbeat"), 1);
    guard.release().await.unwrap();
    kept.release().await.unwrap();
}

/// While the grant that was learned is alive, after it was released, and while the next one is alive.
async fn a_message_after_its_grant_was_learned_is_ignored(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.messages(Messages::Hold);
    let (held, waiter) = contended(&env, &other, &client).await;
    held.release().await.unwrap();
    env.eventually("the message", async || faults.held() == 1 && faults.answered("lock_acquire") == 1).await;
    faults.gap();
    let guard = env.soon("the heartbeat", waiter).await.unwrap();
    assert_holds(&env, &guard);

    let messages = faults.deliver();
    // The renewal after the gap shows that the message was handled before.
    let renewals = faults.answered("lock_renew");
    faults.gap();
    env.eventually("a renewal", async || faults.answered("lock_renew") > renewals).await;
    assert_holds(&env, &guard);
    guard.release().await.unwrap();

    let next = client.lock("a").lock().await.unwrap();
    messages.iter().for_each(|message| faults.inject(message.clone()));
    // The release is repeated, because the server names its attempt, and again after the gap. If the client has not yet
    // seen the answer to the first one by then, it repeats that one too. None of them changes anything.
    let repeated = messages.len() as u64;
    env.eventually("the clean-ups", async || faults.answered("lock_cancel") == repeated).await;
    let renewals = faults.answered("lock_renew");
    faults.gap();
    env.eventually("a renewal", async || faults.answered("lock_renew") > renewals).await;
    assert_holds(&env, &next);
    env.eventually("the clean-up", async || faults.answered("lock_cancel") > repeated).await;
    assert_holds(&env, &next);
    assert_eq!(faults.calls("lock_release"), 1);
    assert!(faults.calls("lock_cancel") <= repeated + 2, "{} clean-ups", faults.calls("lock_cancel"));
    next.release().await.unwrap();
    assert!(is_free(&env, "a"));
}

async fn a_message_that_overtakes_the_answer_is_enough(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("lock_acquire", [Fault::HangReply]);
    faults.messages(Messages::Hold);
    let (held, waiter) = contended(&env, &other, &client).await;
    held.release().await.unwrap();
    env.eventually("the message", async || faults.held() == 1).await;
    faults.deliver();
    env.sleep(ms(20)).await;
    faults.release();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert_holds(&env, &guard);
    assert_eq!(faults.total(), 1, "the request is all it took");
    guard.release().await.unwrap();
}

async fn a_message_older_than_half_the_lease_is_checked(env: Env) {
    let other = env.client().await;
    let lease = ms(3000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    faults.messages(Messages::Hold);
    // No heartbeat is answered, so that the lease counts from the request.
    faults.always("lock_heartbeat", Fault::LoseRequest);
    let (held, waiter) = contended(&env, &other, &client).await;
    env.sleep(lease / 2).await;
    held.release().await.unwrap();
    env.eventually("the message", async || faults.held() == 1).await;
    faults.deliver();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(guard.remaining() > lease / 2, "{:?}", guard.remaining());
    assert_holds(&env, &guard);
    assert_eq!(faults.calls("lock_acquire"), 2);
    faults.heal();
    guard.release().await.unwrap();
}

/// The first copy queued up and was granted, unnoticed, and expired. The second copy has just queued up behind another
/// holder, when the message about the first copy's grant arrives: it says the same attempt id.
async fn a_message_of_a_grant_that_expired_is_not_believed_after_a_resend(env: Env) {
    let other = env.client().await;
    let lease = ms(1500);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    faults.messages(Messages::Hold);
    faults.next("lock_acquire", [Fault::LoseReplyLater]);
    let (held, waiter) = contended(&env, &other, &client).await;
    held.release().await.unwrap();
    env.eventually("the message of the first copy", async || faults.held() == 1).await;
    let first = stored_token(&env, "a").unwrap();
    until_free(&env, "a").await;

    let held = env.soon("the lock", other.lock("a").lock().into_future()).await.unwrap();
    faults.release();
    env.eventually("the second copy", async || faults.answered("lock_acquire") == 2).await;
    assert_eq!(waiting(&env, "a"), 1);
    faults.deliver();
    env.eventually("it asks again", async || faults.answered("lock_acquire") == 3).await;
    assert_eq!(waiting(&env, "a"), 1, "it waits still");
    assert_holds(&env, &held);
    let token = held.token();
    assert!(token.get() > first);

    faults.messages(Messages::Pass);
    let start = env.now();
    held.release().await.unwrap();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(env.now() - start < lease + SLACK);
    assert!(guard.token() > token);
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

async fn noise_on_the_channel_changes_nothing(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let guard = client.lock("a").lock().await.unwrap();
    let held = other.lock("b").lock().await.unwrap();
    let waiter = acquiring(&env, &client, "b");
    until_waiting(&env, "b", 1).await;
    let (mine, theirs) = (holders(&env, "a").remove(0), holders(&env, "b").remove(0));
    let noise = [
        String::new(),
        "\u{0}".to_owned(),
        mine.clone(),
        format!("revoked {mine}9"),
        format!("revoked {theirs}"),
        format!("REVOKED {mine}"),
        format!("1 30000 {theirs}"),
        format!("99999999999999999999 30000 {mine}"),
        "x".repeat(1 << 20),
    ];
    for text in noise {
        faults.inject(Notice::Message(text.into_bytes()));
    }
    faults.inject(Notice::Message(vec![0xff; 64]));
    // A gap follows it. When that one is answered, everything before was handled.
    faults.gap();
    env.eventually("the gap is answered", async || faults.answered("lock_heartbeat") >= 1).await;
    assert_holds(&env, &guard);
    assert_eq!(waiting(&env, "b"), 1);
    held.release().await.unwrap();
    env.soon("the waiter", waiter).await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
}
