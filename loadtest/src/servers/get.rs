use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the body of a 200 answer. Blocks.
pub(crate) fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let asked = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().with_context(|| format!("no answer from http://{address}{path}"))?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => bail!("http://{address}{path} answers {answer}"),
    }
}
