//! On which runtimes and servers each test runs.

/// Makes a `#[test]` of each `async fn(Env)` for each runtime whose feature is on.
#[macro_export]
macro_rules! on_every_runtime {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "tokio")]
        $crate::env::on_runtime! { run, tokio_multi, TokioMulti, $($test),+ }
        #[cfg(feature = "tokio")]
        $crate::env::on_runtime! { run, tokio_current, TokioCurrent, $($test),+ }
        #[cfg(feature = "smol")]
        $crate::env::on_runtime! { run, smol, Smol, $($test),+ }
        #[cfg(feature = "async-std")]
        $crate::env::on_runtime! { run, async_std, AsyncStd, $($test),+ }
    };
}

/// As [`on_every_runtime`], but on the embedded server.
#[macro_export]
macro_rules! on_the_embedded_server {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "tokio")]
        $crate::env::on_runtime! { run_embedded, embedded_tokio_multi, TokioMulti, $($test),+ }
        #[cfg(feature = "tokio")]
        $crate::env::on_runtime! { run_embedded, embedded_tokio_current, TokioCurrent, $($test),+ }
        #[cfg(feature = "smol")]
        $crate::env::on_runtime! { run_embedded, embedded_smol, Smol, $($test),+ }
        #[cfg(feature = "async-std")]
        $crate::env::on_runtime! { run_embedded, embedded_async_std, AsyncStd, $($test),+ }
    };
}
