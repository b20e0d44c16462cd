//! TCP sockets of this network namespace by state, by the other side, and by the port on this side: what a
//! leak of sockets is about. `/proc/net/tcp` would be a line of text for each; sock_diag(7) is faster.

#[cfg(target_os = "linux")]
use super::netlink;
use super::{Counts, number};
use crate::what::Holders;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// States by their numbers, as `ss` names them; empty for those in which this side closed: no process holds
/// such a socket, although since 6.16 its inode may be told.
const STATES: [&str; 12] =
    ["", "ESTAB", "SYN-SENT", "SYN-RECV", "", "", "", "", "CLOSE-WAIT", "", "LISTEN", ""];
/// The families AF_INET and AF_INET6.
#[cfg(target_os = "linux")]
const FAMILIES: [u8; 2] = [2, 10];

/// Numbers of sockets.
#[derive(Default)]
struct Sockets {
    states: BTreeMap<&'static str, u64>,
    peers: BTreeMap<(IpAddr, u16), u64>,
    ports: BTreeMap<u16, u64>,
}

/// Counts the sockets; of a kernel that does not tell, none.
#[cfg(target_os = "linux")]
pub(super) fn count(counts: &mut Counts) {
    let mut sockets = Sockets::default();
    for family in FAMILIES {
        // `struct inet_diag_req_v2`: family, protocol TCP, no attributes, all states, any address.
        let mut request = vec![family, 6, 0, 0];
        request.extend(u32::MAX.to_ne_bytes());
        request.extend([0; 48]);
        let _ = netlink::each(&request, |message| sockets.add(message));
    }
    sockets.put(counts);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn count(_: &mut Counts) {}

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
impl Sockets {
    /// An answer: family, state, timer and retransmissions, a byte each; the ports of both sides; the
    /// addresses of both sides, 16 bytes each.
    fn add(&mut self, message: &[u8]) {
        let state = message.get(1).and_then(|state| STATES.get(usize::from(*state)));
        let state = state.filter(|state| !state.is_empty());
        // What no process holds has no inode, the last word.
        if number(message, 68).is_none_or(|inode| inode == 0) {
            return;
        }
        let (Some(state), Some(ports), Some(address)) = (state, message.get(4..8), message.get(24..40))
        else {
            return;
        };
        *self.states.entry(state).or_default() += 1;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let (own, other) = (port(0), port(2));
        // What listens has no other side.
        if other == 0 {
            return;
        }
        *self.ports.entry(own).or_default() += 1;
        let address = match message[0] {
            2 => number(address, 0).map(|word| IpAddr::V4(Ipv4Addr::from(word.to_ne_bytes()))),
            _ => address.try_into().ok().map(|bytes: [u8; 16]| {
                let address = Ipv6Addr::from(bytes);
                address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
            }),
        };
        if let Some(address) = address {
            *self.peers.entry((address, other)).or_default() += 1;
        }
    }

    fn put(self, counts: &mut Counts) {
        // Fewer are not listed: of many peers most have no name.
        let least = |kind| Holders::builtin().find(kind).least;
        self.states.iter().for_each(|(state, count)| counts.add_named(state, "TCP state", *count));
        let of_peer = least("TCP peer");
        for ((address, port), count) in self.peers.into_iter().filter(|(_, count)| *count >= of_peer) {
            counts.add_named(&SocketAddr::new(address, port).to_string(), "TCP peer", count);
        }
        let of_port = least("TCP port");
        for (port, count) in self.ports.into_iter().filter(|(_, count)| *count >= of_port) {
            counts.add_named(&format!("port {port}"), "TCP port", count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(family: u8, state: u8, own: u16, other: u16, address: &[u8]) -> Vec<u8> {
        let mut bytes = vec![family, state, 0, 0];
        bytes.extend(own.to_be_bytes());
        bytes.extend(other.to_be_bytes());
        bytes.extend([0; 16]);
        bytes.extend(address);
        bytes.resize(68, 0);
        bytes.extend(7u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn states_peers_and_ports() {
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 5];
        let six = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let mut orphan = answer(2, 1, 40_000, 443, &[10, 0, 0, 5]);
        orphan.truncate(68);
        orphan.extend([0; 4]);
        let mut sockets = Sockets::default();
        for at in 0..100 {
            sockets.add(&answer(2, 8, 40_000 + at, 443, &[10, 0, 0, 5]));
            sockets.add(&answer(10, 1, 50_000 + at, 443, &mapped));
            sockets.add(&answer(10, 1, 8080, 10_000 + at, &six));
            sockets.add(&answer(2, 10, at, 0, &[]));
            // Held by no process, of a state that is none, cut off.
            sockets.add(&orphan);
            sockets.add(&answer(2, 5, 40_000, 443, &[10, 0, 0, 5]));
            sockets.add(&answer(2, 77, 1, 2, &[]));
            sockets.add(&answer(2, 1, 1, 2, &[])[..70]);
        }
        let mut counts = Counts::default();
        sockets.put(&mut counts);
        let said: Vec<String> =
            counts.0.iter().map(|((by, kind), count)| format!("{by:?} {kind} {count}")).collect();
        assert_eq!(
            said,
            [
                "Named(\"10.0.0.5:443\") TCP peer 200",
                "Named(\"CLOSE-WAIT\") TCP state 100",
                "Named(\"ESTAB\") TCP state 200",
                "Named(\"LISTEN\") TCP state 100",
                "Named(\"port 8080\") TCP port 100",
            ]
        );
    }

    /// A connection of this test is counted, if the kernel tells of any socket.
    #[cfg(target_os = "linux")]
    #[test]
    fn connections_are_counted() {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listening.local_addr().expect("an address");
        let many: Vec<_> =
            (0..64).map(|_| std::net::TcpStream::connect(address).expect("connected")).collect();
        let mut counts = Counts::default();
        count(&mut counts);
        if !counts.0.is_empty() {
            let peer = (super::super::By::Named(address.to_string()), "TCP peer".to_string());
            assert_eq!(counts.0.get(&peer), Some(&(many.len() as u64)));
        }
    }
}
