//! Where the suites run: beside a runtime that one other thread drives, and on the embedded server.

macro_rules! on_every_runtime {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "tokio")]
        $crate::support::env::on_runtime! { run, beside_tokio, TokioCurrent, $($test),+ }
    };
}

macro_rules! on_the_embedded_server {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "smol")]
        $crate::support::env::on_runtime! { run_embedded, embedded, Smol, $($test),+ }
    };
}

pub(crate) use {on_every_runtime, on_the_embedded_server};
