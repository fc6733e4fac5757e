//! The prelude hides no name of a program: the crates of the runtimes are meant by `tokio`, `smol` and `async_std`.

use bowline::prelude::*;

async fn tokens(client: &Client) -> Result<Token, Error> {
    let guard: LockGuard = client.lock("a").lock().await?;
    let token = guard.token();
    guard.release().await.map(|()| token)
}

#[tokio::test]
async fn a_program_on_tokio() -> Result<(), Error> {
    let client = bowline::embedded::Server::new().client(bowline::tokio::Tokio::current()?).await?;
    let task = tokio::spawn(async move { tokens(&client).await });
    assert!(task.await.is_ok_and(|token| token.is_ok()));
    Ok(())
}

#[test]
fn programs_on_the_others() -> Result<(), Error> {
    let server = bowline::embedded::Server::new();
    let first = smol::block_on(async { tokens(&server.client(bowline::smol::Smol).await?).await })?;
    let second = async_std::task::block_on(async {
        let config = Config::builder().prefix("bowline").build()?;
        tokens(&server.client_with(bowline::async_std::AsyncStd, config).await?).await
    })?;
    assert!(first < second, "two clients of one server");
    Ok(())
}
