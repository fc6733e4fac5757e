use super::*;

#[test]
fn upkeep_leaves_time_for_another_attempt() {
    let of = |timeout, lease| {
        let [timeout, lease] = [timeout, lease].map(Duration::from_millis);
        upkeep(&Config::builder().command_timeout(timeout).lease(lease).build().unwrap()).as_millis()
    };
    assert_eq!(of(3000, 30_000), 3000);
    assert_eq!(of(25_000, 30_000), 10_000);
    assert_eq!(of(3000, 1000), 500);
    assert_eq!(of(200, 1000), 200);
}
