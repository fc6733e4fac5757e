//! Man pages and completions, from the arguments themselves.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::exit::{Failure, OK};
use crate::show;

pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "bowline", &mut text);
    show::lines(&[String::from_utf8_lossy(&text).trim_end().to_owned()])?;
    Ok(OK)
}

/// Writes what packages contain.
pub(crate) fn all(folder: &Path) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::own(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut Arguments::command(), "bowline", folder).map_err(failed)?;
    }
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    Ok(OK)
}
