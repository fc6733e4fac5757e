//! Requests to a service in this process.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends a request without a body. Returns the status line without the version, and the body of the response.
///
/// # Errors
/// The connection failed, or what arrived is no HTTP.
pub async fn request(address: SocketAddr, method: &str, path: &str) -> io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let parts = response.split_once("\r\n\r\n").and_then(|(head, body)| Some((head.lines().next()?, body)));
    let (status, body) = parts.ok_or_else(|| io::Error::other("no HTTP response"))?;
    Ok((status.trim_start_matches("HTTP/1.1 ").to_owned(), body.to_owned()))
}
