//! UNIX sockets, by the kernel's socket monitoring (sock_diag(7)): messages that were sent and are not
//! read, which no file of /proc counts, and to which server connections go.
//!
//! A connection has two sockets. That of the server has the name on which it listens, and so tells where
//! the other one is connected to, whatever process has it.
//!
//! A message stays charged to the socket that sent it until it is read, with all memory that it takes: its
//! `sk_buff` and its data. So these bytes are those of slabs. They are counted for the socket that is to read
//! them, the sender's peer; a sender that is connected to no other socket has them itself.

#[cfg(target_os = "linux")]
use super::netlink;
use super::{Counts, half, number};
use crate::what::Holders;
use std::collections::BTreeMap;

/// What the kernel tells of UNIX sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Bytes of unread messages, by the inode of the socket that is to read them.
    pub(super) unread: BTreeMap<u32, u64>,
    /// Connections, by the name on which their server listens.
    pub(super) servers: BTreeMap<String, u64>,
}

/// Asks for all sockets. Nothing is known of a kernel without the module, or in a jail without netlink.
#[cfg(target_os = "linux")]
pub(super) fn sockets() -> Sockets {
    let mut sockets = Sockets::default();
    let _ = netlink::each(&request(), |message| add(message, &mut sockets));
    sockets
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sockets() -> Sockets {
    Sockets::default()
}

impl Sockets {
    /// Puts down the servers with many connections.
    pub(super) fn put(&self, counts: &mut Counts) {
        const KIND: &str = "UNIX peer";
        let least = Holders::builtin().find(KIND).least;
        let many = self.servers.iter().filter(|(_, count)| **count >= least);
        many.for_each(|(name, count)| counts.add_named(name, KIND, *count));
    }
}

/// The bytes that wait and the server, of one answer: family, type, state, a byte of padding, inode and a
/// cookie of 8 bytes; then attributes.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn add(message: &[u8], sockets: &mut Sockets) {
    const ESTABLISHED: u8 = 1;
    const NAME: u16 = 0;
    const PEER: u16 = 2;
    const LENGTHS: u16 = 4;
    let Some((head, mut rest)) = message.split_at_checked(16) else { return };
    let Some(own) = number(head, 4) else { return };
    let (mut reader, mut sent) = (own, 0);
    // Length and kind of an attribute, two bytes each; the next one begins at a multiple of four.
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let Some(value) = rest.get(4..length.into()) else { break };
        match kind {
            NAME if head[2] == ESTABLISHED => {
                *sockets.servers.entry(name(value)).or_default() += 1;
            }
            PEER => reader = number(value, 0).filter(|peer| *peer > 0).unwrap_or(own),
            // What waits to be read: of datagrams only the first. What was sent and waits: all of it.
            LENGTHS => sent = number(value, 4).unwrap_or(0),
            _ => {}
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    if sent > 0 {
        let of_reader = sockets.unread.entry(reader).or_default();
        *of_reader = of_reader.saturating_add(sent.into());
    }
}

/// A path, or a name without a file, which begins with a zero byte and is shown with an `@`. Names may be
/// in any encoding, and get one line.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn name(bytes: &[u8]) -> String {
    let (start, rest) = match bytes {
        [0, rest @ ..] => ("@", rest),
        path => ("", path.split(|byte| *byte == 0).next().unwrap_or_default()),
    };
    let text = String::from_utf8_lossy(rest);
    let plain = text.trim_end_matches('\0').replace(|c: char| c.is_control(), "?");
    format!("{start}{plain}")
}

/// `struct unix_diag_req`: family AF_UNIX, protocol, padding; sockets in all states, of any inode and cookie.
#[cfg(target_os = "linux")]
fn request() -> Vec<u8> {
    /// UDIAG_SHOW_NAME, UDIAG_SHOW_PEER and UDIAG_SHOW_RQLEN.
    const SHOW: u32 = 0x1 | 0x4 | 0x10;
    let mut bytes = vec![1, 0, 0, 0];
    [u32::MAX, 0, SHOW, u32::MAX, u32::MAX].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these attributes: kind and numbers.
    fn answer(inode: u32, attributes: &[(u16, &[u32])]) -> Vec<u8> {
        let mut bytes = vec![1, 2, 1, 0];
        bytes.extend(inode.to_ne_bytes());
        bytes.extend([0; 8]);
        for (kind, numbers) in attributes {
            bytes.extend((4 + 4 * numbers.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
        }
        bytes
    }

    #[test]
    fn what_was_sent_waits_for_the_peer() {
        let check = |messages: &[Vec<u8>], expected: &[(u32, u64)]| {
            let mut sockets = Sockets::default();
            messages.iter().for_each(|message| add(message, &mut sockets));
            assert_eq!(sockets.unread.into_iter().collect::<Vec<_>>(), expected);
        };
        // 11 messages of 2,304 bytes in a pair; the reader sees the first.
        let sender = answer(7, &[(2, &[8]), (4, &[0, 25_344])]);
        let reader = answer(8, &[(2, &[7]), (4, &[1500, 0])]);
        check(&[sender.clone(), reader.clone()], &[(8, 25_344)]);
        // Several senders of one reader, and one that is connected to none.
        let second = answer(9, &[(4, &[0, 100]), (2, &[8])]);
        check(&[sender.clone(), second, answer(5, &[(4, &[0, 60])])], &[(5, 60), (8, 25_444)]);
        // Cut off at any byte, and with a length that is none: no more than whole attributes.
        (0..sender.len()).for_each(|length| check(&[sender[..length].to_vec()], &[]));
        let mut broken = reader;
        broken[16] = 1;
        check(&[broken], &[]);
    }

    #[test]
    fn connections_have_the_name_of_their_server() {
        let named = |state: u8, name: &[u8]| {
            let mut bytes = vec![1, 1, state, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend((4 + name.len() as u16).to_ne_bytes());
            bytes.extend(0u16.to_ne_bytes());
            bytes.extend(name);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let mut sockets = Sockets::default();
        for _ in 0..70 {
            add(&named(1, b"/run/x.sock\0"), &mut sockets);
            add(&named(1, b"\0bus\n"), &mut sockets);
            add(&answer(7, &[(2, &[8])]), &mut sockets);
        }
        add(&named(10, b"/run/x.sock\0"), &mut sockets);
        add(&named(1, b"/run/few"), &mut sockets);
        let mut counts = Counts::default();
        sockets.put(&mut counts);
        let said: Vec<String> =
            counts.0.iter().map(|((by, kind), count)| format!("{by:?} {kind} {count}")).collect();
        assert_eq!(said, ["Named(\"/run/x.sock\") UNIX peer 70", "Named(\"@bus?\") UNIX peer 70"]);
    }

    /// This process's own unread messages are counted, if the kernel tells of any socket.
    #[cfg(target_os = "linux")]
    #[test]
    fn unread_messages_are_counted() {
        use std::os::unix::net::UnixDatagram;
        let before: u64 = sockets().unread.values().sum();
        let (one, _other) = UnixDatagram::pair().expect("a pair");
        (0..5).for_each(|_| assert_eq!(one.send(&[0; 1500]).expect("sent"), 1500));
        let mut told = 0;
        if netlink::each(&request(), |_| told += 1).is_ok() && told > 0 {
            let more = sockets().unread.values().sum::<u64>().saturating_sub(before);
            assert!(more >= 5 * 1500, "{more} of {told} sockets");
        }
    }
}
