//! The kernel's socket monitoring, sock_diag(7): a request for all sockets of a family in this network
//! namespace, and an answer for each.

use super::{half, number};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};
use std::time::Duration;

/// Bytes before each message: length, type, flags, sequence, sender.
const HEAD: usize = 16;
/// SOCK_DIAG_BY_FAMILY.
const BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// How long the kernel may take for a part of its answer, which it gives at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends the request, whose head is made here, and gives each answer without its head to `each`.
pub(super) fn each(request: &[u8], mut each: impl FnMut(&[u8])) -> rustix::io::Result<()> {
    let kind = Some(netlink::SOCK_DIAG);
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, kind)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    send(&socket, &message(request), SendFlags::empty())?;
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(buffer.len())];
        if rest.is_empty() {
            return Ok(());
        }
        while let (Some(length), Some(kind)) = (number(rest, 0), half(rest, 4)) {
            let length = length as usize;
            match kind {
                DONE => return Ok(()),
                ERROR => return Err(Errno::INVAL),
                _ => rest.get(HEAD..length).into_iter().for_each(&mut each),
            }
            rest = rest.get(length.next_multiple_of(4).max(HEAD)..).unwrap_or_default();
        }
    }
}

/// `struct nlmsghdr` and the request; the sequence is 1, the sender the kernel's choice.
fn message(request: &[u8]) -> Vec<u8> {
    let length = (HEAD + request.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend(1u32.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(request);
    bytes
}
