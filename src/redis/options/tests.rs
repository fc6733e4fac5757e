use super::*;
use crate::error::ErrorKind;
use crate::redis::servers::Servers;

fn error(options: &ConnectOptions) -> String {
    let error = options.parts().and_then(|parts| Servers::of(&parts)).err().expect("an error");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = format!("{error} {error:?} {options:?}");
    assert!(!text.contains("s3cret"), "{text}");
    text
}

#[test]
fn user_and_password_replace_those_of_the_url() {
    for url in ["redis://alice:s3cret@h/2", "redis://h/2", "redis-sentinel://h/2?master=m&sentinel_password=x"] {
        let parts = ConnectOptions::new(url).username("bob").password("p@ss/word").parts().unwrap();
        assert_eq!((parts.login.username(), parts.login.password()), (Some("bob"), Some("p@ss/word")), "{url}");
        assert_eq!(parts.login.db(), 2, "{url}");
    }
    let parts = ConnectOptions::new("redis://alice:s3cret@h").password("other").parts().unwrap();
    assert_eq!((parts.login.username(), parts.login.password()), (Some("alice"), Some("other")));
    assert!(error(&ConnectOptions::new("redis://h").username("alice")).contains("needs a password"));
}

#[test]
fn all_that_names_servers_is_an_option() {
    let shown = |options: ConnectOptions| Servers::of(&options.parts().unwrap()).unwrap().to_string();
    assert_eq!(shown("redis://h".into()), "h:6379/0");
    assert_eq!(shown(String::from("redis://h").into()), "h:6379/0");
    assert_eq!(shown((&String::from("redis-cluster://h,i:1")).into()), "h:6379,i:1");
    assert_eq!(shown(SentinelUrl::new("m").sentinel("h", 1).into()), "master m of the sentinels h:1");
    assert_eq!(shown("unix:///s".parse().unwrap()), "/s/0");
    let error = "redis-sentinel://h".parse::<ConnectOptions>().unwrap_err();
    assert!(error.to_string().contains("?master="), "{error}");
}

#[test]
fn credentials_are_not_shown() {
    let options = ConnectOptions::new("redis://alice:s3cret@h").password("s3cret");
    assert_eq!(format!("{options:?}"), r#"ConnectOptions { addresses: ["h:6379"], .. }"#);
    assert!(error(&ConnectOptions::new("s3cret")).contains("addresses: []"));
}

#[cfg(feature = "tls")]
#[test]
fn what_is_not_a_certificate_is_invalid_input() {
    let tls = || ConnectOptions::new("rediss://h");
    assert!(error(&tls().ca_certificate("s3cret")).contains("a trusted certificate is not PEM: there is none"));
    let cut = "-----BEGIN CERTIFICATE-----\ns3cret\n";
    assert!(error(&tls().ca_certificate(cut)).contains("an END line is missing"));
    let not_base64 = "-----BEGIN CERTIFICATE-----\n!s3cret!\n-----END CERTIFICATE-----\n";
    assert!(error(&tls().ca_certificate(not_base64)).contains("is not base64"));
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(error(&tls().ca_certificate(empty)).contains("a trusted certificate cannot be used"));
}

#[cfg(feature = "tls")]
#[test]
fn options_for_tls_need_tls() {
    for url in ["redis://h", "redis-cluster://h", "redis-sentinel://h?master=m", "unix:///s"] {
        assert!(error(&ConnectOptions::new(url).ca_certificate("x")).contains("asks for TLS"), "{url}");
        assert!(error(&ConnectOptions::new(url).client_certificate("x", "y")).contains("asks for TLS"), "{url}");
    }
    for url in ["redis-sentinel://h?master=m&tls=true", "redis-sentinel://h?master=m&sentinel_tls=true"] {
        assert!(error(&ConnectOptions::new(url).ca_certificate("x")).contains("is not PEM"), "{url}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn a_configuration_is_used_as_it_is_or_refused() {
    use crate::redis::url::tls::Trust;
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::crypto::ring;

    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    let options = ConnectOptions::new("rediss://h").tls_config(Arc::clone(&config));
    let parts = options.parts().unwrap();
    assert!(Trust::load(&parts.tls_options).unwrap().is(&config));
    for both in [options.clone().ca_certificate("x"), options.clone().client_certificate("x", "y")] {
        assert!(error(&both).contains("give either it or the others"));
    }
    assert!(error(&ConnectOptions::new("redis://h").tls_config(config)).contains("asks for TLS"));
}
