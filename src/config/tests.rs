use super::*;
use crate::error::ErrorKind;

#[test]
fn an_identity_is_kept_only_if_it_was_set() {
    assert_eq!(Config::builder().build().unwrap().client_id, None);
    assert_eq!(Config::builder().client_id(Uuid::nil()).build().unwrap().client_id, None);
    let id = Uuid::from_u128(7);
    assert_eq!(Config::builder().client_id(id).build().unwrap().client_id, Some(id));
}

#[test]
fn labels() {
    let build = |label: &str| Config::builder().label(label).build();
    for label in ["", "web-7", "with a space", "ü", &"x".repeat(MAX_LABEL), &"ü".repeat(MAX_LABEL / 2)] {
        assert_eq!(&*build(label).unwrap().label, label);
    }
    for label in [&*"x".repeat(MAX_LABEL + 1), &"ü".repeat(MAX_LABEL / 2 + 1), "a\nb", "\u{1b}[2J", "\u{85}"] {
        let error = build(label).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("label"), "{error}");
    }
}

#[test]
fn bad_durations() {
    let ms = Duration::from_millis;
    for lease in [Duration::ZERO, ms(99), Duration::from_nanos(1), MAX_LEASE + ms(1), Duration::MAX] {
        assert_eq!(Config::builder().lease(lease).build().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    for timeout in [Duration::ZERO, ms(9), Duration::from_secs(601), Duration::MAX] {
        let built = Config::builder().command_timeout(timeout).build();
        assert_eq!(built.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(Config::builder().retry_timeout(Duration::MAX).build().is_err());
    assert!(Config::builder().retry_timeout(Duration::ZERO).lease(MIN_LEASE).build().is_ok());
    assert!(Config::builder().handoff_time(Duration::MAX).build().is_err());
    assert!(Config::builder().handoff_time(Duration::ZERO).build().is_ok());
    for timeout in [Duration::from_millis(10_001), Duration::MAX] {
        let error = Config::builder().shutdown_timeout(timeout).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("shutdown_timeout"), "{error}");
    }
    for timeout in [Duration::ZERO, ms(250), Duration::from_secs(10)] {
        assert_eq!(Config::builder().shutdown_timeout(timeout).build().unwrap().shutdown_timeout, timeout);
    }
    assert_eq!(Config::builder().build().unwrap().shutdown_timeout, ms(1000), "the default");
}

#[test]
fn upkeep_leaves_time_for_another_attempt() {
    let of = |timeout, lease| {
        let [timeout, lease] = [timeout, lease].map(Duration::from_millis);
        Config::builder().command_timeout(timeout).lease(lease).build().unwrap().upkeep().as_millis()
    };
    assert_eq!(of(3000, 30_000), 3000);
    assert_eq!(of(25_000, 30_000), 10_000);
    assert_eq!(of(3000, 1000), 500);
    assert_eq!(of(200, 1000), 200);
}
