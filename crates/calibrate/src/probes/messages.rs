//! A message of 100 bytes, sent and received by one thread: no wake-up, no switch.

use super::{Place, Probe, timed};
use crate::series::{Samples, Series, Transport};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

const BYTES: usize = 100;
/// Messages that are sent before the first is received: fewer than any buffer holds.
const BATCH: u32 = 16;
const BATCHES: u32 = 4;

/// Sends or receives one message.
type Pass = Box<dyn FnMut() -> io::Result<()>>;

struct Messages {
    transport: Transport,
    clock_ns: f64,
    send: Pass,
    receive: Pass,
}

fn probe(
    place: &Place,
    transport: Transport,
    mut to: impl Write + 'static,
    mut from: impl Read + 'static,
) -> Box<dyn Probe> {
    Box::new(Messages {
        transport,
        clock_ns: place.clock_ns,
        send: Box::new(move || to.write_all(&[7; BYTES])),
        receive: Box::new(move || from.read_exact(&mut [0; BYTES])),
    })
}

pub(super) fn make_socket_pair(place: &Place) -> io::Result<Box<dyn Probe>> {
    let (to, from) = UnixStream::pair()?;
    Ok(probe(place, Transport::SocketPair, to, from))
}

pub(super) fn make_pipe(place: &Place) -> io::Result<Box<dyn Probe>> {
    let (from, to) = io::pipe()?;
    Ok(probe(place, Transport::Pipe, to, from))
}

pub(super) fn make_tcp(place: &Place) -> io::Result<Box<dyn Probe>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = TcpStream::connect(listener.local_addr()?)?;
    let (from, _) = listener.accept()?;
    to.set_nodelay(true)?;
    Ok(probe(place, Transport::Tcp, to, from))
}

/// A UDP socket as a stream of messages.
struct Datagrams(UdpSocket);

impl Write for Datagrams {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Datagrams {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.recv(bytes)
    }
}

pub(super) fn make_udp(place: &Place) -> io::Result<Box<dyn Probe>> {
    let (to, from) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    to.connect(from.local_addr()?)?;
    from.connect(to.local_addr()?)?;
    // A lost message is an error of this probe, not the end of the run.
    from.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
    Ok(probe(place, Transport::Udp, Datagrams(to), Datagrams(from)))
}

impl Probe for Messages {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        for _ in 0..BATCHES {
            let (ns, sent) = timed(self.clock_ns, || (0..BATCH).try_for_each(|_| (self.send)()));
            sent?;
            into.push(Series::Send(self.transport), ns / f64::from(BATCH));
            let (ns, received) = timed(self.clock_ns, || (0..BATCH).try_for_each(|_| (self.receive)()));
            received?;
            into.push(Series::Receive(self.transport), ns / f64::from(BATCH));
        }
        Ok(())
    }
}
