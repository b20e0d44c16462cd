//! Entries of a tar: ustar, with the GNU and pax extensions for long names.
//!
//! Read here and not by the crate tar, which keeps a long name in memory whatever its size: a compressed
//! kilobyte can claim a name of gigabytes. Here a name has a limit, and other content is skipped unread.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read};

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file: its size in bytes, and the time of its last change in seconds since 1970.
    File { path: String, size: u64, changed_s: u64 },
    /// A symbolic or hard link.
    Link { path: String, target: String },
}

/// Why a tar could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// The input could not be read.
    #[error("{}{source}", place(*offset, source))]
    Io {
        /// Bytes read before.
        offset: u64,
        /// The reader's error.
        source: Error,
    },
    /// A header is not a tar's.
    #[error("at byte {offset}: expected {expected}: not a tar, or damaged")]
    Header {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
}

/// The place of an error in front of its message. The message of an input that ends early names the place
/// itself.
fn place(offset: u64, source: &Error) -> String {
    if source.kind() == ErrorKind::UnexpectedEof { String::new() } else { format!("at byte {offset}: ") }
}

impl TarError {
    /// Whether the input ended before its end.
    pub fn is_cut_off(&self) -> bool {
        matches!(self, TarError::Io { source, .. } if source.kind() == ErrorKind::UnexpectedEof)
    }
}

const BLOCK: usize = 512;
/// What is asked of a decompressor at once. What is skipped is not copied out of it.
const BUFFER: usize = 128 << 10;
/// The longest name or pax header kept.
const NAME_LIMIT: u64 = 1 << 16;

pub(crate) struct Tar<R> {
    reader: BufReader<R>,
    offset: u64,
    /// Content and padding of the current entry that is not yet read.
    content: u64,
    padding: u64,
}

/// What a pax or GNU header says about the entry after it.
#[derive(Default)]
struct Long {
    path: Option<String>,
    target: Option<String>,
    size: Option<u64>,
}

impl<R: Read> Tar<R> {
    pub(crate) fn new(reader: R) -> Self {
        Tar { reader: BufReader::with_capacity(BUFFER, reader), offset: 0, content: 0, padding: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next file or link; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, TarError> {
        let mut long = Long::default();
        loop {
            self.skip_content()?;
            let at = self.offset;
            let Some(block) = self.header()? else { return Ok(None) };
            let error = |expected| TarError::Header { offset: at, expected };
            let size = long.size.or_else(|| size_of(&block[124..136])).ok_or_else(|| error("a size"))?;
            (self.content, self.padding) = (size, size.wrapping_neg() % BLOCK as u64);
            match block[156] {
                b'L' => long.path = Some(text(&self.name()?)),
                b'K' => long.target = Some(text(&self.name()?)),
                b'x' => long.pax(&self.name()?),
                b'1' | b'2' => {
                    let target = long.target.take().unwrap_or_else(|| text(&block[157..257]));
                    return Ok(Some(Entry::Link {
                        path: long.path.take().unwrap_or_else(|| path_of(&block)),
                        target,
                    }));
                }
                b'0' | 0 | b'7' => {
                    return Ok(Some(Entry::File {
                        path: long.path.take().unwrap_or_else(|| path_of(&block)),
                        size,
                        changed_s: size_of(&block[136..148]).unwrap_or(0),
                    }));
                }
                b'S' => {
                    // A sparse file: maps that do not fit the header are in blocks that its size does not
                    // count.
                    let mut more = block[482] != 0;
                    while more {
                        more = self.block()?.is_some_and(|block| block[504] != 0);
                    }
                    (self.content, self.padding) = (size, size.wrapping_neg() % BLOCK as u64);
                    long = Long::default();
                }
                _ => long = Long::default(),
            }
        }
    }

    /// The content of the file that `next` gave.
    pub(crate) fn content(&mut self) -> Result<Vec<u8>, TarError> {
        let mut content = Vec::new();
        let read = self.reader.by_ref().take(self.content).read_to_end(&mut content);
        let read = read.map_err(|source| TarError::Io { offset: self.offset, source })? as u64;
        self.offset += read;
        if read < self.content {
            return Err(self.cut_off());
        }
        self.content = 0;
        Ok(content)
    }

    fn cut_off(&self) -> TarError {
        let what = format!("the tar ends early at byte {}: was it copied whole?", self.offset);
        TarError::Io { offset: self.offset, source: Error::new(ErrorKind::UnexpectedEof, what) }
    }

    fn name(&mut self) -> Result<Vec<u8>, TarError> {
        if self.content > NAME_LIMIT {
            return Err(TarError::Header { offset: self.offset, expected: "a name shorter than 64 KiB" });
        }
        self.content()
    }

    fn skip_content(&mut self) -> Result<(), TarError> {
        let count = self.content.saturating_add(self.padding);
        let mut left = count;
        while left > 0 {
            let have = match self.reader.fill_buf() {
                Ok(buffer) => buffer.len(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(source) => return Err(TarError::Io { offset: self.offset, source }),
            };
            if have == 0 {
                return Err(self.cut_off());
            }
            let skip = left.min(have as u64);
            self.reader.consume(skip as usize);
            self.offset += skip;
            left -= skip;
        }
        (self.content, self.padding) = (0, 0);
        Ok(())
    }

    /// The next header block, `None` at the end mark or the end of the input.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>, TarError> {
        let at = self.offset;
        let Some(block) = self.block()?.filter(|block| block.iter().any(|&byte| byte != 0)) else {
            return Ok(None);
        };
        if !has_checksum(&block) {
            return Err(TarError::Header { offset: at, expected: "a header whose checksum is right" });
        }
        Ok(Some(block))
    }

    /// The next block, `None` at the end of the input.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, TarError> {
        let mut block = [0; BLOCK];
        let mut have = 0;
        while have < BLOCK {
            match self.reader.read(&mut block[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(self.cut_off()),
                Ok(read) => have += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(TarError::Io { offset: self.offset, source }),
            }
        }
        self.offset += BLOCK as u64;
        Ok(Some(block))
    }
}

/// Whether a file that begins so is a tar: its first block has the magic, or the checksum of the times before
/// it.
pub(crate) fn is_tar(first: &[u8]) -> bool {
    let Some(block) = first.first_chunk::<BLOCK>() else { return false };
    &block[257..262] == b"ustar" || (block[0] != 0 && has_checksum(block))
}

fn has_checksum(block: &[u8; BLOCK]) -> bool {
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = block[148..156].iter().map(|&byte| u64::from(byte)).sum();
    size_of(&block[148..156]) == Some(sum - own + 8 * u64::from(b' '))
}

impl Long {
    /// Records `<length> <key>=<value>\n`; unknown keys and malformed records are skipped.
    fn pax(&mut self, mut data: &[u8]) {
        while let Some(space) = data.iter().position(|&byte| byte == b' ') {
            let length = std::str::from_utf8(&data[..space]).ok().and_then(crate::text::number::<usize>);
            let record = length.and_then(|length| data.get(space + 1..length.checked_sub(1)?));
            let Some(record) = record else { return };
            let (key, value) = match record.iter().position(|&byte| byte == b'=') {
                Some(at) => (&record[..at], &record[at + 1..]),
                None => return,
            };
            match key {
                b"path" => self.path = Some(text(value)),
                b"linkpath" => self.target = Some(text(value)),
                b"size" => self.size = std::str::from_utf8(value).ok().and_then(crate::text::number),
                _ => {}
            }
            // The line feed after the last record may be missing.
            data = data.get(space + 1 + record.len() + 1..).unwrap_or(&[]);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    crate::bytes::text_lossy(bytes).into_owned()
}

fn path_of(block: &[u8; BLOCK]) -> String {
    let name = text(&block[..100]);
    let prefix = if &block[257..263] == b"ustar\0" { text(&block[345..500]) } else { String::new() };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// An octal number, or GNU's base 256 for large ones.
fn size_of(field: &[u8]) -> Option<u64> {
    if let Some((high @ [0x80, ..], low)) = field.split_last_chunk() {
        return high[1..].iter().all(|&byte| byte == 0).then(|| u64::from_be_bytes(*low));
    }
    let digits = std::str::from_utf8(field).ok()?.trim_matches(|c: char| c == ' ' || c == '\0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_records() {
        #[track_caller]
        fn check(data: &[u8], path: Option<&str>, size: Option<u64>) {
            let mut long = Long::default();
            long.pax(data);
            assert_eq!((long.path.as_deref(), long.size), (path, size));
        }
        check(b"10 path=a\n11 size=12\n", Some("a"), Some(12));
        check(b"10 path=a", Some("a"), None);
        check(b"11 path=a", None, None);
        check(b"1 path=a\n", None, None);
        check(b"0 ", None, None);
    }

    #[test]
    fn numbers() {
        #[track_caller]
        fn check(field: &[u8], expected: Option<u64>) {
            assert_eq!(size_of(field), expected);
        }
        check(b"00000000017\0", Some(15));
        check(b"            ", Some(0));
        check(b"\x80\0\0\0\0\0\0\x02\0\0\0\x01", Some((2 << 32) + 1));
        check(b"\x80\x01\0\0\0\0\0\0\0\0\0\0", None);
        check(b"\x80\0\0\0\0\0\0\x02", None);
        check(b"8", None);
    }
}
