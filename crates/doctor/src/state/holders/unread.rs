//! Messages that were sent through UNIX sockets and are not read: no file of /proc counts them, the kernel's
//! socket monitoring does (sock_diag(7)).
//!
//! A message stays charged to the socket that sent it until it is read, with all memory that it takes: its
//! `sk_buff` and its data. So these bytes are those of slabs. They are counted for the socket that is to read
//! them, the sender's peer; a sender that is connected to no other socket has them itself.

#[cfg(target_os = "linux")]
use super::netlink;
use super::{half, number};
use std::collections::BTreeMap;

/// Bytes of unread messages, by the inode of the socket that is to read them. Empty where the kernel does not
/// tell.
#[cfg(target_os = "linux")]
pub(super) fn by_socket() -> BTreeMap<u32, u64> {
    let mut unread = BTreeMap::new();
    // A kernel without the module, or a jail without netlink: then nothing is known.
    let _ = netlink::each(&request(), |message| add(message, &mut unread));
    unread
}

#[cfg(not(target_os = "linux"))]
pub(super) fn by_socket() -> BTreeMap<u32, u64> {
    BTreeMap::new()
}

/// The bytes that wait, of one answer: family, type, state, a byte of padding, inode and a cookie of 8 bytes;
/// then attributes.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn add(message: &[u8], unread: &mut BTreeMap<u32, u64>) {
    const PEER: u16 = 2;
    const LENGTHS: u16 = 4;
    let Some((head, mut rest)) = message.split_at_checked(16) else { return };
    let Some(own) = number(head, 4) else { return };
    let (mut reader, mut sent) = (own, 0);
    // Length and kind of an attribute, two bytes each; the next one begins at a multiple of four.
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let Some(value) = rest.get(4..length.into()) else { break };
        match kind {
            PEER => reader = number(value, 0).filter(|peer| *peer > 0).unwrap_or(own),
            // What waits to be read: of datagrams only the first. What was sent and waits: all of it.
            LENGTHS => sent = number(value, 4).unwrap_or(0),
            _ => {}
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    if sent > 0 {
        let of_reader = unread.entry(reader).or_default();
        *of_reader = of_reader.saturating_add(sent.into());
    }
}

/// `struct unix_diag_req`: family AF_UNIX, protocol, padding; sockets in all states, of any inode and cookie.
#[cfg(target_os = "linux")]
fn request() -> Vec<u8> {
    /// UDIAG_SHOW_PEER and UDIAG_SHOW_RQLEN.
    const SHOW: u32 = 0x4 | 0x10;
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
            let mut unread = BTreeMap::new();
            messages.iter().for_each(|message| add(message, &mut unread));
            assert_eq!(unread.into_iter().collect::<Vec<_>>(), expected);
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

    /// This process's own unread messages are counted, if the kernel tells of any socket.
    #[cfg(target_os = "linux")]
    #[test]
    fn unread_messages_are_counted() {
        use std::os::unix::net::UnixDatagram;
        let before: u64 = by_socket().values().sum();
        let (one, _other) = UnixDatagram::pair().expect("a pair");
        (0..5).for_each(|_| assert_eq!(one.send(&[0; 1500]).expect("sent"), 1500));
        let mut sockets = 0;
        if netlink::each(&request(), |_| sockets += 1).is_ok() && sockets > 0 {
            let more = by_socket().values().sum::<u64>().saturating_sub(before);
            assert!(more >= 5 * 1500, "{more} of {sockets} sockets");
        }
    }
}
