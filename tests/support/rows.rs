//! On which runtimes and servers each test runs.

/// Makes a `#[test]` of each `async fn(Env)` for each runtime whose feature is on. The root of the test binary
/// declares `mod support`.
macro_rules! on_every_runtime {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "tokio")]
        $crate::support::env::on_runtime! { run, tokio_multi, TokioMulti, $($test),+ }
        #[cfg(feature = "tokio")]
        $crate::support::env::on_runtime! { run, tokio_current, TokioCurrent, $($test),+ }
        #[cfg(feature = "smol")]
        $crate::support::env::on_runtime! { run, smol, Smol, $($test),+ }
        #[cfg(feature = "async-std")]
        $crate::support::env::on_runtime! { run, async_std, AsyncStd, $($test),+ }
    };
}

/// As [`on_every_runtime`], but on the embedded server.
macro_rules! on_the_embedded_server {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "tokio")]
        $crate::support::env::on_runtime! { run_embedded, embedded_tokio_multi, TokioMulti, $($test),+ }
        #[cfg(feature = "tokio")]
        $crate::support::env::on_runtime! { run_embedded, embedded_tokio_current, TokioCurrent, $($test),+ }
        #[cfg(feature = "smol")]
        $crate::support::env::on_runtime! { run_embedded, embedded_smol, Smol, $($test),+ }
        #[cfg(feature = "async-std")]
        $crate::support::env::on_runtime! { run_embedded, embedded_async_std, AsyncStd, $($test),+ }
    };
}

pub(crate) use {on_every_runtime, on_the_embedded_server};
