//! Members of a tar, as they are written.

use std::io::{self, Read, Write};

pub(super) const BLOCK: usize = 512;

/// The first size that has no place in a header's eleven octal digits.
const OCTAL_END: u64 = 1 << 33;

pub(super) enum Content<'a> {
    File(&'a [u8]),
    Link(&'a str),
}

/// Writes a member in the ustar format, with GNU's members for what is too long for it.
pub(super) fn member(tar: &mut dyn Write, name: &str, content: Content, seconds: u64) -> io::Result<()> {
    let (kind, bytes, target) = match content {
        Content::File(bytes) => (b'0', bytes, ""),
        Content::Link(target) => (b'2', &[][..], target),
    };
    for (long, text) in [(b'L', name), (b'K', target)] {
        if text.len() > 100 {
            tar.write_all(&header("././@LongLink", long, text.len() as u64 + 1, "", seconds))?;
            padded(tar, &[text.as_bytes(), &[0]].concat())?;
        }
    }
    tar.write_all(&header(name, kind, bytes.len() as u64, target, seconds))?;
    padded(tar, bytes)
}

/// Writes a file of `size` bytes with a short name, from `content`, which has as many.
pub(super) fn file(
    tar: &mut dyn Write,
    name: &str,
    (size, content): (u64, &mut dyn Read),
    seconds: u64,
) -> io::Result<()> {
    tar.write_all(&header(name, b'0', size, "", seconds))?;
    let copied = io::copy(&mut content.take(size), tar)?;
    if copied < size {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{name}: {copied} of {size} bytes"),
        ));
    }
    pad(tar, size)
}

/// Writes the end: two blocks of zeros.
pub(super) fn end(tar: &mut dyn Write) -> io::Result<()> {
    tar.write_all(&[0; 2 * BLOCK])
}

fn padded(tar: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    tar.write_all(bytes)?;
    pad(tar, bytes.len() as u64)
}

fn pad(tar: &mut dyn Write, size: u64) -> io::Result<()> {
    tar.write_all(&[0; BLOCK][..(size.wrapping_neg() % BLOCK as u64) as usize])
}

fn header(name: &str, kind: u8, size: u64, target: &str, seconds: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, limit: usize, bytes: &[u8]| {
        let len = bytes.len().min(limit);
        block[at..at + len].copy_from_slice(&bytes[..len]);
    };
    put(0, 100, name.as_bytes());
    put(100, 8, b"0000444\0");
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    match size {
        ..OCTAL_END => put(124, 12, format!("{size:011o}\0").as_bytes()),
        // GNU's form of larger ones.
        _ => put(124, 12, &[&[0x80, 0, 0, 0][..], &size.to_be_bytes()].concat()),
    }
    put(136, 12, format!("{seconds:011o}\0").as_bytes());
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, target.as_bytes());
    put(257, 8, b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
