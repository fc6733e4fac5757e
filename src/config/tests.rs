use super::*;

#[test]
fn defaults_are_valid_and_every_client_is_another() {
    let (a, b) = (Config::builder().build().unwrap(), Config::builder().build().unwrap());
    assert_ne!(a.client_id, b.client_id);
    assert!(!a.client_id.is_nil());
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
    assert!(Config::builder().patience(Duration::MAX).build().is_err());
    assert!(Config::builder().patience(Duration::ZERO).lease(MIN_LEASE).build().is_ok());
    assert!(Config::builder().line_time(Duration::MAX).build().is_err());
    assert!(Config::builder().line_time(Duration::ZERO).build().is_ok());
}
