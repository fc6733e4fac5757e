//! Where to connect, from the options, the environment and a file.
//!
//! The names in the file are those of the library: of `ConnectOptions`, and of `Config` as far as they are of use here.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use bowline::{Client, Config, ConnectOptions};
use toml::{Table, Value};

use crate::args::Servers;
use crate::exit::Failure;

/// The settings of a file that are those of the client.
const OF_THE_CLIENT: [&str; 3] = ["command_timeout", "prefix", "retry_timeout"];

/// Connects, with these settings of the client on top of those of the file.
pub(crate) async fn connect(servers: &Servers, own: Table) -> Result<Client, Failure> {
    let (options, config) = settings(servers, own)?;
    Ok(bowline::tokio::connect_with(options, config).await?)
}

/// The settings of whatever has `lease` and `label`.
pub(crate) fn client(label: &str) -> Table {
    Table::from_iter([("label".to_owned(), Value::from(label))])
}

pub(crate) fn settings(servers: &Servers, own: Table) -> Result<(ConnectOptions, Config), Failure> {
    let mut options = file(servers.config.as_deref().filter(|path| !path.is_empty()).map(Path::new))?;
    let mut client: Table =
        OF_THE_CLIENT.iter().filter_map(|name| Some(((*name).to_owned(), options.remove(*name)?))).collect();
    overlay(servers, &mut options)?;
    if let Some(prefix) = given(&servers.prefix) {
        client.insert("prefix".to_owned(), Value::from(prefix));
    }
    client.extend(own);
    if !options.contains_key("url") {
        return Err(Failure::own("no server: give --url, BOWLINE_URL or a file with url (--config)"));
    }
    // Its errors quote the table that they are about, and the table has the password.
    let told = |error: toml::de::Error| Failure::own(error.message().to_owned());
    Ok((options.try_into().map_err(told)?, client.try_into().map_err(told)?))
}

/// What was said. An empty variable of the environment says nothing.
fn given(said: &Option<String>) -> Option<&str> {
    said.as_deref().filter(|said| !said.is_empty())
}

fn variable(name: &str) -> Result<Option<String>, Failure> {
    let not_text = |_| Failure::own(format!("{name} is not UTF-8"));
    let value = std::env::var_os(name).map(|value| value.into_string().map_err(not_text)).transpose()?;
    Ok(value.filter(|value| !value.is_empty()))
}

/// What options and the environment say wins.
fn overlay(servers: &Servers, options: &mut Table) -> Result<(), Failure> {
    let Servers { url, username, password_file, cacert, cert, key, .. } = servers;
    let url = given(url);
    let (mut username, mut password_file) = (given(username), given(password_file));
    let mut password = variable("BOWLINE_PASSWORD")?;
    let login = url.map_or(Login::default(), Login::of);
    // A URL on the command line wins over the environment, too.
    if url.is_some() && url != variable("BOWLINE_URL")?.as_deref() {
        if login.is_there() && username == variable("BOWLINE_USERNAME")?.as_deref() {
            username = None;
        }
        if login.has_password {
            password = None;
            if password_file == variable("BOWLINE_PASSWORD_FILE")?.as_deref() {
                password_file = None;
            }
        }
    }
    if login.is_there() {
        options.remove("username");
    }
    if login.has_password || password_file.is_some() || password.is_some() {
        options.remove("password");
        options.remove("password_file");
    }
    let password = password.filter(|_| password_file.is_none());
    let of_tls = [("ca_certificate", given(cacert)), ("client_certificate", given(cert)), ("client_key", given(key))];
    for (name, said) in of_tls {
        if let Some(said) = said {
            options.remove(name);
            options.insert(format!("{name}_file"), Value::from(said));
        }
    }
    let said =
        [("url", url), ("username", username), ("password_file", password_file), ("password", password.as_deref())];
    options.extend(said.into_iter().filter_map(|(name, said)| Some((name.to_owned(), Value::from(said?)))));
    options.entry("client_name").or_insert_with(|| Value::from("bowline-cli"));
    Ok(())
}

/// What a URL says of a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Login {
    has_user: bool,
    has_password: bool,
}

impl Login {
    fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if scheme.ends_with("unix") {
            let said =
                |name| rest.split(['?', '&']).any(|part| part.strip_prefix(name).is_some_and(|it| !it.is_empty()));
            return Self { has_user: said("user="), has_password: said("pass=") };
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, password) =
            authority.rsplit_once('@').map_or(("", ""), |(login, _)| login.split_once(':').unwrap_or((login, "")));
        Self { has_user: !user.is_empty(), has_password: !password.is_empty() }
    }

    fn is_there(self) -> bool {
        self.has_user || self.has_password
    }
}

/// The file that was named, or else the first of the usual ones that exists.
fn file(named: Option<&Path>) -> Result<Table, Failure> {
    let Some(path) = named.map(Path::to_owned).or_else(|| usual().into_iter().find(|path| path.exists())) else {
        return Ok(Table::new());
    };
    let wrong = |error: &dyn Display| Failure::own(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| wrong(&error.message()))?;
    // A relative path leads from the folder of the file. From the current folder, others might choose what is read.
    let folder = path.parent().unwrap_or(Path::new(""));
    for (_, named) in table.iter_mut().filter(|(name, _)| name.ends_with("_file")) {
        if let Value::String(named) = named {
            let file = folder.join(&*named).into_os_string();
            *named = file.into_string().map_err(|_| wrong(&"its folder is not UTF-8"))?;
        }
    }
    Ok(table)
}

/// Relative and empty paths are ignored: they would lead into the current folder, where others may write.
fn usual() -> Vec<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let of_user = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    let of_user = of_user.map(|folder| folder.join("bowline.toml"));
    of_user.into_iter().chain([PathBuf::from("/etc/bowline.toml")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_have_a_login() {
        let login = |has_user, has_password| Login { has_user, has_password };
        for (url, found) in [
            ("redis://h/", login(false, false)),
            ("redis://h/?a=b@c", login(false, false)),
            ("redis://u@h/", login(true, false)),
            ("redis://u:@h/", login(true, false)),
            ("redis://:p@h/", login(false, true)),
            ("redis-sentinel://u:p@h:1,i:2/?master=m", login(true, true)),
            ("unix:///tmp/s.sock?db=2&user=a&pass=b", login(true, true)),
            ("redis+unix:///tmp/s.sock?pass=", login(false, false)),
            ("h", login(false, false)),
        ] {
            assert_eq!(Login::of(url), found, "{url}");
        }
    }
}
