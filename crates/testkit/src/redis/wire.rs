use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the lines of `INFO section`.
pub async fn info(
    address: impl ToSocketAddrs,
    section: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let text = command(address, &["INFO", section]).await?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    Ok(lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// Sends a command. If the reply is an array, reads only its head.
pub async fn command(address: impl ToSocketAddrs, words: &[&str]) -> anyhow::Result<String> {
    timeout(PATIENCE, exchange(address, words))
        .await
        .with_context(|| format!("no reply to {words:?}"))?
}

async fn exchange(address: impl ToSocketAddrs, words: &[&str]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(text.as_bytes()).await?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let line = line.trim_end();
    let Some(kind) = line.chars().next() else {
        bail!("the connection was closed")
    };
    let rest = &line[kind.len_utf8()..];
    match kind {
        '+' | ':' | '*' => Ok(rest.to_owned()),
        '-' => bail!("{rest}"),
        '$' if rest == "-1" => Ok(String::new()),
        '$' => {
            let mut bytes = vec![0; rest.parse().context("a length")?];
            reader.read_exact(&mut bytes).await?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => bail!("not a reply: {line:?}"),
    }
}
