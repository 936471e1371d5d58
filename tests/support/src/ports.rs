//! Ports for servers that are started later, and started again on the same port.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux gives to clients (32,768 and up): a client elsewhere in the tests is never given a port
/// that a killed server will want back.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static TAKEN: AtomicU16 = AtomicU16::new(0);

/// A port of loopback that is free for TCP and UDP, and that this process has not handed out before.
#[must_use]
pub fn free_port() -> u16 {
    // Test programs that run at once begin far apart.
    let start = std::process::id().wrapping_mul(7_919) % u32::from(COUNT);
    for _ in 0..COUNT {
        let next = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from((start + next) % u32::from(COUNT)).unwrap_or_default();
        let address = ("127.0.0.1", FIRST + offset);
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return address.1;
        }
    }
    panic!("no port between {FIRST} and {} is free", FIRST + COUNT - 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_handed_out_once_is_free_and_is_not_one_that_clients_get() {
        let held: Vec<_> =
            (0..200).map(|_| UdpSocket::bind(("127.0.0.1", free_port())).expect("it is free")).collect();
        // From the start again, as another program with the same start would: what is in use is passed over.
        TAKEN.store(0, Ordering::Relaxed);
        let again = free_port();
        let ports: Vec<_> =
            held.iter().map(|socket| socket.local_addr().expect("an address").port()).collect();
        assert!(!ports.contains(&again), "{again}");
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)));
    }
}
