//! What the connection promises, checked the same way on every runtime, against real servers.

mod acknowledged;
mod calls;
mod closing;
mod connecting;
mod primaries;
mod rates;
mod subscriptions;
#[cfg(feature = "tokio")]
mod tokio_alone;
mod trouble;
mod without_runtime;

use std::time::Duration;

use crate::conformance::connections::*;
use crate::support::adapters::Runtime;
use acknowledged::*;
use bowline::{Client, ConnectionError};
use calls::*;
use closing::*;
use connecting::*;
use primaries::*;
use rates::*;
use subscriptions::*;
use trouble::*;
use without_runtime::*;

const SHORT: Duration = Duration::from_millis(400);

fn code(error: &ConnectionError) -> &str {
    match error {
        ConnectionError::Refused { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

/// The whole way: a client by `connect`, and a lock.
async fn a_client(client: bowline::Result<Client>) {
    let client = client.unwrap();
    let guard = client.lock("orders").lock().await.unwrap();
    assert!(client.lock("orders").try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(client.lock("orders").try_lock().await.unwrap().is_some());
    client.close().await;
}

macro_rules! suite {
    ($on:path: $($test:ident)+) => {
        $(#[test]
        fn $test() {
            crate::support::adapters::bounded(|| $on(|rt| Box::pin(super::$test(rt))));
        })+
    };
    ($on:path) => {
        suite!($on:
            answers_come_with_the_number_of_replicas the_wait_is_at_the_server_of_the_calls a_user_who_may_not_wait
            a_wait_in_vain_leaves_time_for_its_answer
            replies_and_scripts_that_the_server_lost every_script_is_sent_whole_once_and_by_its_sha_later
            a_reconnect_sends_each_script_whole_once a_dropped_call_sends_its_script_all_the_same
            a_flush_sends_each_script_whole_few_times
            refusals_have_the_servers_code_and_stay_with_their_call calls_run_in_the_order_they_are_polled
            many_calls_keep_their_order_too many_calls_at_once dropped_calls_leave_the_connection_in_step
            a_connection_killed_under_a_call an_idle_connection_killed_is_replaced a_server_that_stands_still calls_wait_for_a_server_that_restarts
            a_call_of_little_use_gives_a_silent_connection_up an_attempt_to_connect_again_leaves_time_for_another
            a_server_a_long_way_off_is_reached_again a_slow_connection_is_not_taken_for_a_silent_one
            a_server_that_is_gone messages_arrive_in_order_and_gaps_are_told subscriptions_survive_a_restart
            a_subscription_refused_later_is_told_once
            what_is_heard_without_a_proof_is_not_delivered
            a_gap_comes_after_every_reconnect_of_the_commands a_subscription_ends_up_where_the_commands_are
            commands_follow_a_subscription_that_finds_another_server_only
            a_dropped_subscription_closes_its_connection a_subscription_without_the_right addresses
            a_reconnection_selects_the_database_again credentials what_does_not_answer_or_does_not_exist
            servers_that_do_not_fit warnings dropping_a_connection_attempt_closes_its_socket closing_ends_everything
            dropping_ends_everything closing_while_the_server_is_away
            a_server_with_too_many_clients_says_so
            a_replica_is_refused a_primary_demoted_behind_one_address_is_left
            a_primary_demoted_for_good_is_asked_again_and_again a_password_changed_under_a_connection
            a_server_that_goes_wrong_is_not_called_all_the_time a_quiet_subscription_is_asked_every_ten_seconds
            a_subscription_that_says_nothing_is_given_up a_password_that_the_server_quotes_is_shown_nowhere
            a_new_connection_of_the_commands_asks_the_subscription_for_life
            calls_need_no_runtime calls_polled_together_are_written_together answers_are_those_of_their_calls
            a_server_that_cannot_be_reached_costs_no_more_than_was_given a_login_that_is_refused_is_no_connection
            a_server_that_falls_silent_costs_no_more_than_was_given
            the_connection_of_this_runtime the_connection_to_a_cluster the_embedded_server a_server_that_is_not_there);
    };
}

type Test = fn(Runtime) -> futures::future::BoxFuture<'static, ()>;

#[cfg(feature = "smol")]
mod smol {
    use std::sync::Arc;

    use crate::support::adapters::Runtime;

    fn run(test: super::Test) {
        let open =
            |executor: Arc<dyn bowline::Executor>, url: String, config| -> futures::future::BoxFuture<'static, _> {
                Box::pin(async move { bowline::smol::open(executor, &url, &config).await })
            };
        ::smol::block_on(test(Runtime { executor: Arc::new(bowline::smol::Smol), open }));
    }

    suite!(run);

    #[test]
    fn connects() {
        crate::support::adapters::bounded(|| {
            let server = crate::support::server::Server::start();
            ::smol::block_on(async { super::a_client(bowline::smol::connect(&server.url()).await).await });
        });
    }
}

#[cfg(feature = "async-std")]
mod async_std {
    use std::sync::Arc;

    use crate::support::adapters::Runtime;

    fn run(test: super::Test) {
        let open =
            |executor: Arc<dyn bowline::Executor>, url: String, config| -> futures::future::BoxFuture<'static, _> {
                Box::pin(async move { bowline::async_std::open(executor, &url, &config).await })
            };
        ::async_std::task::block_on(test(Runtime { executor: Arc::new(bowline::async_std::AsyncStd), open }));
    }

    suite!(run);

    #[test]
    fn connects() {
        crate::support::adapters::bounded(|| {
            let server = crate::support::server::Server::start();
            ::async_std::task::block_on(async {
                super::a_client(bowline::async_std::connect(&server.url()).await).await
            });
        });
    }
}

#[cfg(feature = "tokio")]
fn on_tokio(mut builder: tokio::runtime::Builder, test: Test) {
    let runtime = builder.enable_all().build().unwrap();
    let executor = std::sync::Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
    let open = |executor: std::sync::Arc<dyn bowline::Executor>,
                url: String,
                config|
     -> futures::future::BoxFuture<'static, _> {
        Box::pin(async move { bowline::tokio::open(executor, &url, &config).await })
    };
    runtime.block_on(test(Runtime { executor, open }));
}

#[cfg(feature = "tokio")]
mod tokio_multi_thread {
    use crate::support::adapters::bounded;
    use crate::support::server::Server;

    fn run(test: super::Test) {
        super::on_tokio(tokio::runtime::Builder::new_multi_thread(), test);
    }

    suite!(run);

    #[test]
    fn connects() {
        bounded(|| {
            let server = Server::start();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async { super::a_client(bowline::tokio::connect(&server.url()).await).await });
        });
    }
}

#[cfg(feature = "tokio")]
mod tokio_current_thread {
    fn run(test: super::Test) {
        super::on_tokio(tokio::runtime::Builder::new_current_thread(), test);
    }

    suite!(run);
}
