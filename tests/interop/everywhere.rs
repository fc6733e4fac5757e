//! Where a scenario runs.

/// Each scenario alone on a single server. `all` runs them one after the other, for deployments that start more slowly.
macro_rules! everywhere {
    ($($scenario:ident),+ $(,)?) => {
        mod single {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    if let Some(scene) = crate::scene::Scene::single().await {
                        super::$scenario(&scene).await;
                    }
                }
            )+
        }

        pub(crate) async fn all(scene: &crate::scene::Scene) {
            $(
                println!("{}", stringify!($scenario));
                $scenario(scene).await;
            )+
        }
    };
}
