use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use tokio::runtime::Builder;
use tokio::signal::ctrl_c;
use tokio::task::spawn_blocking;

use crate::config::TokenHash;
use crate::exit::{Code, Failure};
use crate::print::err;

const BYTES: usize = 32;
/// Maximum bytes of the input, because requests cannot carry longer tokens.
const LONGEST: u64 = 64 << 10;

/// Hashes the token on standard input, or a new one.
///
/// # Errors
/// If no request could carry the token, or standard input cannot be read.
pub(super) fn run() -> Result<String, Failure> {
    let given = match io::stdin().is_terminal() {
        true => asked()?,
        false => piped()?,
    };
    Ok(match given {
        Some(token) => TokenHash::of(&token).to_hex() + "\n",
        None => made(),
    })
}

fn made() -> String {
    let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; BYTES]>());
    let hash = TokenHash::of(&token).to_hex();
    err(
        "The client sends the token. The configuration has its sha256 only, and nobody can tell the token from that.\n",
    );
    format!("token:  {token}\nsha256: {hash}\n")
}

/// Empty input means no token; a blank token is a mistake.
fn piped() -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.context("cannot read a token from standard input")?;
    if text.is_empty() {
        return Ok(None);
    }
    match text.trim() {
        "" => Err(Failure::usage(
            "no token on standard input: the line is blank. Give a token, or nothing (`shoal config hash-token < /dev/null`) to have \
             one made",
        )),
        token => Ok(Some(token.to_owned())),
    }
}

fn asked() -> Result<Option<String>, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let answer = runtime.block_on(async {
        let _hidden = Hidden::input().context("cannot hide what is typed at the terminal")?;
        err("Token (it is not shown; an empty line makes a new one): ");
        let line = spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|_| line)
        });
        tokio::select! {
            line = line => {
                let line = line.context("cannot read the terminal")?;
                Ok(line.context("cannot read a token from the terminal")?)
            }
            _ = ctrl_c() => Err(Failure::new(Code::Interrupted, "no token was read")),
        }
    });
    runtime.shutdown_background();
    let line = answer?;
    let token = line.trim();
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

/// Turns the terminal's echo off until this value is dropped.
struct Hidden(Termios);

impl Hidden {
    fn input() -> nix::Result<Self> {
        let (stdin, before) = (io::stdin(), tcgetattr(io::stdin().as_fd())?);
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        hidden.local_flags.insert(LocalFlags::ECHONL);
        tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &self.0);
    }
}
