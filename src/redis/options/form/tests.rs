use tempfile::NamedTempFile;

use super::*;

/// A file that is removed.
fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, text).unwrap();
    file
}

/// The user, the password and the name in the options, and the servers.
fn shown(options: &ConnectOptions) -> [String; 4] {
    let parts = options.parts().unwrap();
    let text = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let servers = Servers::of(&parts).unwrap().to_string();
    [text(parts.login.username()), text(parts.login.password()), text(parts.client_name.as_deref()), servers]
}

fn from_toml(table: &str) -> ConnectOptions {
    toml::from_str::<Nested>(&format!("[redis]\n{table}")).unwrap().redis
}

#[derive(Deserialize)]
struct Nested {
    redis: ConnectOptions,
}

#[test]
fn every_option_is_read_from_toml_and_the_environment() {
    let expected = ["bob", " p@ss/word ", "svc", "h:6379/2"];
    let values = [("url", "redis://h/2"), ("username", "bob"), ("password", " p@ss/word "), ("client_name", "svc")];
    let table = values.map(|(name, value)| format!("{name} = '{value}'")).join("\n");
    assert_eq!(shown(&from_toml(&table)), expected);
    let variables = values.map(|(name, value)| (format!("REDIS_{}", name.to_uppercase()), value.to_owned()));
    let by_environment: ConnectOptions = envy::prefixed("REDIS_").from_iter(variables).unwrap();
    assert_eq!(shown(&by_environment), expected);
    assert_eq!(shown(&from_toml("url = 'redis://alice:x@h'")), ["alice", "x", "none", "h:6379/0"]);
}

#[test]
fn a_url_is_enough() {
    let (url, expected) = ("redis-cluster://h,i:1", ["none", "none", "none", "h:6379,i:1"]);
    let by_toml: Nested = toml::from_str(&format!("redis = '{url}'")).unwrap();
    let by_environment: Nested = envy::from_iter([("REDIS".to_owned(), url.to_owned())]).unwrap();
    assert_eq!([shown(&by_toml.redis), shown(&by_environment.redis)], [expected; 2]);
}

#[test]
fn a_password_in_a_file_ends_with_its_line() {
    for (content, password) in [("s3cret\n", "s3cret"), (" s3 cret \r\n", " s3 cret "), ("s3cret", "s3cret")] {
        let file = file(content);
        let options = from_toml(&format!("url = 'redis://h'\npassword_file = '{}'", file.path().display()));
        assert_eq!(shown(&options)[1], password, "{content:?}");
    }
    // One that is given as text is taken as it is.
    assert_eq!(shown(&from_toml("url = 'redis://h'\npassword = \"s3cret\\n\""))[1], "s3cret\n");
}

/// `A` is ambiguous, and this does not compile, if the type can be written.
trait NeverWritten<A> {
    fn holds() {}
}
impl<T: ?Sized> NeverWritten<()> for T {}
impl<T: ?Sized + serde::Serialize> NeverWritten<u8> for T {}

#[test]
fn options_are_never_written() {
    <ConnectOptions as NeverWritten<_>>::holds();
    <Form as NeverWritten<_>>::holds();
    <Text as NeverWritten<_>>::holds();
}
