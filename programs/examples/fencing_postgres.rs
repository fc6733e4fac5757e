//! Fencing in PostgreSQL: each write compares the token of its hold with the one that the row was written with last,
//! and stores it, in one statement. A holder that stood still while its lease ended cannot overwrite its successor.
//!
//! `cargo run -p bowline-programs --example fencing_postgres`, without a Redis, or on the one at `REDIS_URL`. The
//! database is the one at `DATABASE_URL`, or a server that the program starts if PostgreSQL is installed. The
//! program makes a table of its own in it, and drops it.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use bowline::{Client, LockGuard};
use bowline_programs::{postgres::Postgres, redis};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

/// Whether the status was written. `false`: a later holder has written the row, or there is none.
async fn set_status(database: &PgPool, orders: &str, guard: &LockGuard, status: &str) -> Result<bool, Box<dyn Error>> {
    let token = i64::try_from(guard.token().get())?;
    let mut transaction = database.begin().await?;
    // The same holder may write several times, so equal tokens pass.
    let fenced = format!("UPDATE {orders} SET status = $1, token = $2 WHERE id = 42 AND token <= $2");
    let fenced = sqlx::query(&fenced).bind(status).bind(token).execute(&mut *transaction).await?;
    if fenced.rows_affected() == 0 {
        // Dropping the transaction rolls it back, with all that it has written before.
        return Ok(false);
    }
    // More statements of the same transaction follow here. They need no comparison: the row is locked until its end.
    transaction.commit().await?;
    Ok(true)
}

async fn connect(url: &str) -> Result<PgPool, sqlx::Error> {
    let mut tries = 0..;
    loop {
        match PgPoolOptions::new().max_connections(2).connect(url).await {
            // It has been started just now.
            Err(_) if tries.next() < Some(300) => tokio::time::sleep(Duration::from_millis(100)).await,
            connected => return connected,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (given, server) = match std::env::var("DATABASE_URL") {
        Ok(url) => (Some(url), None),
        Err(_) => (None, Postgres::start()?),
    };
    let Some(url) = given.or(server.as_ref().map(Postgres::url)) else {
        println!("skipped: there is no DATABASE_URL, and PostgreSQL is not installed");
        return Ok(());
    };
    let (database, client) = (connect(&url).await?, redis::connect().await?);
    // Not one that somebody else has made.
    let orders = format!("bowline_example_orders_{:016x}", RandomState::new().hash_one("orders"));
    let columns = "id BIGINT PRIMARY KEY, status TEXT, token BIGINT NOT NULL DEFAULT 0";
    sqlx::query(&format!("CREATE TABLE {orders} ({columns})")).execute(&database).await?;
    let shown = show(&database, &orders, &client).await;
    // Also after an error.
    let dropped = sqlx::query(&format!("DROP TABLE {orders}")).execute(&database).await;
    client.close().await;
    shown?;
    dropped?;
    Ok(())
}

async fn show(database: &PgPool, orders: &str, client: &Client) -> Result<(), Box<dyn Error>> {
    sqlx::query(&format!("INSERT INTO {orders} (id) VALUES (42)")).execute(database).await?;

    let lock = client.lock("order:42");
    let slow = lock.lock().expires_after(Duration::from_millis(200)).await?;
    must_be(set_status(database, orders, &slow, "packed").await?, "the first holder writes")?;
    // It stands still for longer than its lease. The next holder writes.
    let next = lock.lock().await?;
    must_be(set_status(database, orders, &next, "shipped").await?, "the next holder writes")?;
    must_be(!set_status(database, orders, &slow, "cancelled").await?, "a stale holder does not write")?;

    let status = format!("SELECT status FROM {orders} WHERE id = 42");
    let status: String = sqlx::query_scalar(&status).fetch_one(database).await?;
    println!("the order is {status}: the write with token {} was refused", slow.token());
    must_be(status == "shipped", "the last status is that of the next holder")?;
    next.release().await?;
    Ok(())
}

/// Not `assert`: the table is dropped after an error, and not after a panic.
fn must_be(is_so: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if is_so { Ok(()) } else { Err(format!("not so: {what}").into()) }
}
