//! A cluster: every call goes to the master that serves the slot of its keys.

mod host;
mod map;
mod redirect;
mod refresh;
mod slot;
