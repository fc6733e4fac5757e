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
    let mut options = file(servers.config.as_deref())?;
    let mut client: Table =
        OF_THE_CLIENT.iter().filter_map(|name| Some(((*name).to_owned(), options.remove(*name)?))).collect();
    overlay(servers, &mut options);
    if let Some(prefix) = &servers.prefix {
        client.insert("prefix".to_owned(), Value::from(prefix.as_str()));
    }
    client.extend(own);
    if !options.contains_key("url") {
        return Err(Failure::own("no server: give --url, BOWLINE_URL or a file with url (--config)"));
    }
    // Its errors quote the table that they are about, and the table has the password.
    let told = |error: toml::de::Error| Failure::own(error.message().to_owned());
    Ok((options.try_into().map_err(told)?, client.try_into().map_err(told)?))
}

/// What options and the environment say wins.
fn overlay(servers: &Servers, options: &mut Table) {
    let Servers { url, username, password_file, cacert, cert, key, .. } = servers;
    let password = std::env::var("BOWLINE_PASSWORD").ok().filter(|password| !password.is_empty());
    if password_file.is_some() || password.is_some() {
        options.remove("password");
        options.remove("password_file");
    }
    let password = password.filter(|_| password_file.is_none());
    for (said, text) in [(cacert, "ca_certificate"), (cert, "client_certificate"), (key, "client_key")] {
        if said.is_some() {
            options.remove(text);
        }
    }
    let said = [
        ("url", url.as_ref()),
        ("username", username.as_ref()),
        ("password_file", password_file.as_ref()),
        ("password", password.as_ref()),
        ("ca_certificate_file", cacert.as_ref()),
        ("client_certificate_file", cert.as_ref()),
        ("client_key_file", key.as_ref()),
    ];
    options.extend(said.into_iter().filter_map(|(name, said)| Some((name.to_owned(), Value::from(said?.as_str())))));
    options.entry("client_name").or_insert_with(|| Value::from("bowline-cli"));
}

/// The file that was named, or else the first of the usual ones that exists.
fn file(named: Option<&Path>) -> Result<Table, Failure> {
    let Some(path) = named.map(Path::to_owned).or_else(|| usual().into_iter().find(|path| path.exists())) else {
        return Ok(Table::new());
    };
    let wrong = |error: &dyn Display| Failure::own(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    text.parse().map_err(|error: toml::de::Error| wrong(&error.message()))
}

/// Relative and empty paths are ignored: they would lead into the current folder, where others may write.
fn usual() -> Vec<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let of_user = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    let of_user = of_user.map(|folder| folder.join("bowline.toml"));
    of_user.into_iter().chain([PathBuf::from("/etc/bowline.toml")]).collect()
}
