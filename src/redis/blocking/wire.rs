//! What is queued, written and read on a blocking stream.

use std::collections::BTreeMap;
use std::io::Write;

use ::redis::{Cmd, Parser, Value};

use super::dial::Duplex;
use crate::connection::ConnectionError;
use crate::protocol::Script;

/// A stream and what is under way on it. After the first failure it is gone, and nothing more is sent.
pub(super) struct Wire {
    stream: Result<Box<dyn Duplex>, ConnectionError>,
    parser: Parser,
    /// Packed, and not written yet.
    queued: Vec<u8>,
    /// Commands queued so far: the place of the next.
    places: u64,
    /// Answers read so far: the place of the next.
    read: u64,
    /// Read, and not fetched yet.
    answers: BTreeMap<u64, Value>,
    /// Sent whole: on one connection the server takes what is sent in order.
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

    /// Queues a command and returns its place.
    pub(super) fn queue(&mut self, command: &Cmd) -> Result<u64, ConnectionError> {
        match &self.stream {
            Ok(_) => {}
            Err(ConnectionError::Closed) => return Err(ConnectionError::Closed),
            // It was not sent.
            Err(failure) => return Err(ConnectionError::Unreachable(failure.to_string())),
        }
        self.queued.extend_from_slice(&command.get_packed_command());
        self.places += 1;
        Ok(self.places - 1)
    }

    /// Writes what is queued, and reads until the answer to this place is there.
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

    /// Closes the socket. What is under way gets no answer any more.
    fn fail(&mut self, failure: ConnectionError) -> ConnectionError {
        self.queued.clear();
        self.stream = Err(failure.clone());
        failure
    }
}
