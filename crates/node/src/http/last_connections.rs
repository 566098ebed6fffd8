//! Takes the last connections of a listener, and closes it.
//!
//! The operating system completes handshakes by itself. A connection that completes between the last `accept` and the
//! closing of the listener would be reset, and its client could not know whether its request ran.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

use super::{BACKLOG, is_of_one_connection};

/// How long handshakes that have begun may take, if the listener begins no others. It covers the round trip to a balancer
/// or client nearby. A farther client may still be reset.
const HANDSHAKES: Duration = Duration::from_millis(50);

pub(super) struct LastConnections {
    listener: TcpListener,
    is_open: bool,
}

impl LastConnections {
    /// Stops new handshakes, if the operating system can do this. Clients try again after a second, when nobody listens
    /// any more.
    pub(super) fn of(listener: TcpListener) -> Self {
        let stopped = stop_handshakes(&listener);
        if let Err(error) = &stopped {
            tracing::debug!(%error, "could not stop new handshakes");
        }
        Self {
            listener,
            is_open: stopped.is_err(),
        }
    }

    pub(super) async fn each(self, mut take: impl FnMut(TcpStream)) {
        if !self.is_open {
            let settled = Instant::now() + HANDSHAKES;
            while let Ok(accepted) = timeout_at(settled, self.listener.accept()).await {
                match accepted {
                    Ok((stream, _)) => take(stream),
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(_) => break,
                }
            }
        }
        let listener = match self.listener.into_std() {
            Ok(listener) => listener,
            Err(error) => return tracing::debug!(%error, "could not look for waiting connections"),
        };
        for _ in 0..BACKLOG {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(_) => return,
            };
            let stream = stream.set_nonblocking(true).map(|()| stream);
            if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                take(stream);
            }
        }
    }
}

/// Drops the first packets of new connections: those with the flag SYN and without ACK.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn stop_handshakes(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;

    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn stop_handshakes(_: &TcpListener) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::ErrorKind;

    use tokio::net::{TcpListener, TcpStream};

    use super::LastConnections;

    #[tokio::test]
    async fn a_connection_is_taken_or_not_made() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _early = TcpStream::connect(address).await.unwrap();
        let last = LastConnections::of(listener);
        let late = TcpStream::connect(address);
        let mut taken = 0;
        let (late, ()) = tokio::join!(late, last.each(|_| taken += 1));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(taken, 1);
    }
}
