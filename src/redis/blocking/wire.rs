//! The commands that are queued, written and answered on a blocking stream.

use std::collections::BTreeMap;
use std::io::Write;

use ::redis::{Cmd, Parser, Value};

use super::dial::Duplex;
use crate::connection::ConnectionError;
use crate::protocol::Script;

/// A stream with its queued commands and unread answers. The first failure closes it, and nothing more is sent.
pub(super) struct Wire {
    stream: Result<Box<dyn Duplex>, ConnectionError>,
    parser: Parser,
    /// Packed commands that have not been written yet.
    queued: Vec<u8>,
    /// The number of commands queued so far, which is the index of the next one.
    places: u64,
    /// The number of answers read so far, which is the index of the next one.
    read: u64,
    /// Answers that were read and not fetched yet, by index.
    answers: BTreeMap<u64, Value>,
    /// Scripts whose source was sent. The server executes the commands of one connection in order, so it knows these
    /// scripts when the next command arrives.
    scripts: Vec<&'static Script>,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Duplex>) -> Self {
        Self {
            stream: Ok(stream),
            parser: Parser::new(),
            queued: Vec::new(),
            places: 0,
            read: 0,
            answers: BTreeMap::new(),
            scripts: Vec::new(),
        }
    }

    pub(super) fn knows(&self, script: &'static Script) -> bool {
        self.scripts.iter().any(|known| std::ptr::eq(*known, script))
    }

    pub(super) fn sent(&mut self, script: &'static Script) {
        self.scripts.push(script);
    }

    /// Queues a command and returns its index.
    pub(super) fn queue(&mut self, command: &Cmd) -> Result<u64, ConnectionError> {
        match &self.stream {
            Ok(_) => {}
            Err(ConnectionError::Closed) => return Err(ConnectionError::Closed),
            // Nothing was sent.
            Err(failure) => return Err(ConnectionError::Unreachable(failure.to_string())),
        }
        self.queued.extend_from_slice(&command.get_packed_command());
        self.places += 1;
        Ok(self.places - 1)
    }

    /// Writes the queued commands, and reads until the answer with this index has come.
    pub(super) fn answer(&mut self, place: u64) -> Result<Value, ConnectionError> {
        loop {
            if let Some(value) = self.answers.remove(&place) {
                return Ok(value);
            }
            self.flush()?;
            let stream = self.stream.as_mut().map_err(|failure| failure.clone())?;
            match self.parser.parse_value(stream) {
                // This connection has no subscriptions.
                Ok(Value::Push { .. }) => {}
                Ok(value) => {
                    self.answers.insert(self.read, value);
                    self.read += 1;
                }
                Err(error) => return Err(self.fail(ConnectionError::Unknown(error.to_string()))),
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.fail(ConnectionError::Closed);
    }

    fn flush(&mut self) -> Result<(), ConnectionError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let stream = self.stream.as_mut().map_err(|failure| failure.clone())?;
        let queued = std::mem::take(&mut self.queued);
        match stream.write_all(&queued).and_then(|()| stream.flush()) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(ConnectionError::Unknown(error.to_string()))),
        }
    }

    /// Closes the socket. Commands that are under way get no answer any more.
    fn fail(&mut self, failure: ConnectionError) -> ConnectionError {
        self.queued.clear();
        self.stream = Err(failure.clone());
        failure
    }
}
