//! What is no `Config`, and the errors that say so: they name the setting.

use std::time::Duration;

use bowline::{Config, ConfigBuilder};

fn from_toml(line: &str) -> String {
    toml::from_str::<Config>(line).map(|config| format!("{config:?}")).expect_err(line).to_string()
}

fn from_environment(name: &str, value: &str) -> String {
    let read = envy::prefixed("SHOP_").from_iter::<_, Config>([(format!("SHOP_{name}"), value.to_owned())]);
    read.map(|config| format!("{config:?}")).expect_err(name).to_string()
}

/// The checks are those of the builder, word for word.
#[test]
fn a_value_beyond_its_limits_is_refused_as_by_the_builder() {
    type Set = fn(ConfigBuilder) -> ConfigBuilder;
    const DAY: u64 = 24 * 60 * 60;
    let cases: [(&str, &str, Set); 10] = [
        ("prefix", "", |config| config.prefix("")),
        ("prefix", "a b", |config| config.prefix("a b")),
        ("lease", "99ms", |config| config.lease(Duration::from_millis(99))),
        ("lease", "24h 1ms", |config| config.lease(Duration::from_millis(DAY * 1_000 + 1))),
        ("command_timeout", "9ms", |config| config.command_timeout(Duration::from_millis(9))),
        ("command_timeout", "11m", |config| config.command_timeout(Duration::from_secs(660))),
        ("retry_timeout", "25h", |config| config.retry_timeout(Duration::from_secs(DAY + 3_600))),
        ("handoff_time", "11s", |config| config.handoff_time(Duration::from_secs(11))),
        ("shutdown_timeout", "1h", |config| config.shutdown_timeout(Duration::from_secs(3_600))),
        ("acknowledged_by", "101", |config| config.acknowledged_by(101)),
    ];
    for (name, value, set) in cases {
        let expected = set(Config::builder()).build().unwrap_err().to_string();
        assert!(expected.contains(name), "{name}: {expected}");
        let quote = if name == "acknowledged_by" { "" } else { "'" };
        let error = from_toml(&format!("{name} = {quote}{value}{quote}"));
        assert!(error.contains(&expected), "{name}: {error} instead of {expected}");
        let error = from_environment(&name.to_uppercase(), value);
        assert!(error.contains(&expected), "{name}: {error} instead of {expected}");
    }
}

#[test]
fn a_duration_needs_its_unit() {
    for name in ["lease", "command_timeout", "retry_timeout", "handoff_time", "shutdown_timeout"] {
        let wanted = format!("{name} as text with its unit, such as \"30s\" or \"1m 30s\"");
        let number = from_toml(&format!("{name} = 30"));
        assert!(number.contains(&format!("invalid type: integer `30`, expected {wanted}")), "{number}");
        for (value, reason) in [
            ("30", "time unit needed"),
            ("", "empty"),
            ("-1s", "expected number"),
            ("1 parsec", "unknown time unit"),
            ("99999999999999999999s", "too large"),
        ] {
            let expected = format!("{value:?} is not {wanted}: ");
            for error in [from_toml(&format!("{name} = '{value}'")), from_environment(&name.to_uppercase(), value)] {
                assert!(error.contains(&expected) && error.contains(reason), "{error}");
            }
        }
    }
}

#[test]
fn a_name_that_is_no_setting_is_refused() {
    let expected = "unknown field `leese`, expected one of `prefix`, `lease`, `command_timeout`, `retry_timeout`, \
                    `handoff_time`, `shutdown_timeout`, `acknowledged_by`, `client_id`, `label`, \
                    `connect_in_background`, `names_in_metrics`";
    for error in [from_toml("leese = '30s'"), from_environment("LEESE", "30s")] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_value_of_another_kind_is_refused() {
    for (name, text) in [("acknowledged_by", "two"), ("acknowledged_by", "-1"), ("connect_in_background", "perhaps")] {
        let error = from_environment(&name.to_uppercase(), text);
        assert!(error.contains(&format!("provided by {}", name.to_uppercase())), "{error}");
        let error = from_toml(&format!("{name} = '{text}'"));
        assert!(error.contains("invalid type: string") && error.contains(name), "{error}");
    }
    for error in [from_toml("client_id = 'me'"), from_environment("CLIENT_ID", "me")] {
        assert!(error.contains("client_id \"me\" is not a UUID: "), "{error}");
    }
    let error = from_toml("prefix = 7");
    assert!(error.contains("invalid type: integer `7`, expected a string") && error.contains("prefix"), "{error}");
    assert!(from_toml("lease = '1s'\nlease = '2s'").contains("duplicate key"));
}
