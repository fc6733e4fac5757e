//! What becomes of a link, for those who use its two halves by themselves.

use super::Link;

impl Link {
    /// Messages count without a proof: there are no commands on this link.
    pub fn needs_no_proof(&self) {
        self.change(|state| state.proven = Some(state.commands));
    }

    /// Until it stands. False: it is closed.
    pub async fn up(&self) -> bool {
        self.until(|state| !state.down || state.closed).await;
        self.look(|state| !state.closed)
    }

    /// Whether it is not closed.
    pub fn is_open(&self) -> bool {
        self.look(|state| !state.closed)
    }

    /// Whether requests on it are answered now.
    pub fn answers(&self) -> bool {
        self.look(|state| !(state.down || state.closed || state.mute || state.silent == Some(state.commands)))
    }

    /// Until another command connection than that stands; its number. `None`: it is closed.
    pub async fn restored(&self, connection: u64) -> Option<u64> {
        self.until(|state| state.closed || (state.commands != connection && !state.down)).await;
        self.look(|state| Some(state.commands).filter(|_| !state.closed))
    }

    /// The number of the socket for messages.
    pub fn socket(&self) -> u64 {
        self.look(|state| state.messages)
    }

    /// Until that socket is gone.
    pub async fn broken(&self, socket: u64) {
        self.until(|state| state.messages != socket || state.closed).await;
    }

    /// Until there can be a socket, or the link is closed.
    pub async fn listens(&self) {
        self.until(|state| !state.messages_down || state.closed).await;
    }

    /// Ends the socket for messages.
    pub fn hang_up(&self) {
        self.disturb(|state| state.messages += 1);
    }
}
