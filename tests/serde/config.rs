//! `Config` from TOML, JSON and the environment, and back.

use std::time::Duration;

use bowline::{Config, ConfigBuilder};
use serde::{Deserialize, Serialize};

/// A `Config` has no other way to be compared.
fn shown(config: &Config) -> String {
    format!("{config:?}")
}

/// Every setting, with a value that is not the default.
fn all() -> ConfigBuilder {
    Config::builder()
        .prefix("shop:locks")
        .lease(Duration::from_millis(12_500))
        .command_timeout(Duration::from_millis(750))
        .retry_timeout(Duration::from_secs(90))
        .handoff_time(Duration::ZERO)
        .shutdown_timeout(Duration::from_micros(1_500))
        .acknowledged_by(2)
        .client_id(ID.parse().unwrap())
        .label("web-7")
        .connect_in_background(true)
        .names_in_metrics(true)
}

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

const TOML: &str = r#"
prefix = "shop:locks"
lease = "12s 500ms"
command_timeout = "750ms"
retry_timeout = "1m 30s"
handoff_time = "0s"
shutdown_timeout = "1ms 500us"
acknowledged_by = 2
client_id = "67e55044-10b1-426f-9247-bb680e5fe0c8"
label = "web-7"
connect_in_background = true
names_in_metrics = true
"#;

#[test]
fn every_setting_is_read_from_toml() {
    let config: Config = toml::from_str(TOML).unwrap();
    assert_eq!(shown(&config), shown(&all().build().unwrap()));
}

#[test]
fn every_setting_is_written_as_it_is_read() {
    let config = all().build().unwrap();
    assert_eq!(toml::to_string(&config).unwrap().trim(), TOML.trim());
    for config in [config, Config::default()] {
        let from_toml: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        let from_json: Config = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!([shown(&from_toml), shown(&from_json)], [shown(&config), shown(&config)]);
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(shown(&toml::from_str("").unwrap()), shown(&Config::default()));
    assert_eq!(shown(&serde_json::from_str("{}").unwrap()), shown(&Config::default()));
    let config: Config = toml::from_str("lease = '20s'").unwrap();
    assert_eq!(shown(&config), shown(&Config::builder().lease(Duration::from_secs(20)).build().unwrap()));
    // An identity that was not set is drawn by each client, so it is not written.
    assert!(!toml::to_string(&config).unwrap().contains("client_id"));
    assert!(!toml::to_string(&config).unwrap().contains("label"));
}

/// The environment has nothing but text.
#[test]
fn every_setting_is_read_from_the_environment() {
    let variables = [
        ("SHOP_PREFIX", "shop:locks"),
        ("SHOP_LEASE", "12500ms"),
        ("SHOP_COMMAND_TIMEOUT", "0s 750ms"),
        ("SHOP_RETRY_TIMEOUT", "90s"),
        ("SHOP_HANDOFF_TIME", "0"),
        ("SHOP_SHUTDOWN_TIMEOUT", "1500us"),
        ("SHOP_ACKNOWLEDGED_BY", "2"),
        ("SHOP_CLIENT_ID", ID),
        ("SHOP_LABEL", "web-7"),
        ("SHOP_CONNECT_IN_BACKGROUND", "true"),
        ("SHOP_NAMES_IN_METRICS", "true"),
        ("PATH", "not of this program"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config: Config = envy::prefixed("SHOP_").from_iter(variables).unwrap();
    assert_eq!(shown(&config), shown(&all().build().unwrap()));
}

#[test]
fn it_is_a_part_of_the_settings_of_a_program() {
    #[derive(Serialize, Deserialize)]
    struct Settings {
        workers: u32,
        #[serde(default)]
        locks: Config,
    }
    let settings: Settings = toml::from_str("workers = 3\n[locks]\nprefix = 'shop'").unwrap();
    assert_eq!(shown(&settings.locks), shown(&Config::builder().prefix("shop").build().unwrap()));
    let without: Settings = toml::from_str("workers = 3").unwrap();
    assert_eq!(shown(&without.locks), shown(&Config::default()));
    let written = toml::to_string(&settings).unwrap();
    assert!(written.starts_with("workers = 3\n\n[locks]\nprefix = \"shop\"\nlease = \"30s\"\n"), "{written}");
}
