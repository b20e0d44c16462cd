//! A checked cursor over bytes of either endianness: every read says what it wanted and where.

/// A read past the end: the requested item, its offset, and the number of bytes left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) what: &'static str,
    pub(crate) offset: u64,
    pub(crate) need: u64,
    pub(crate) have: u64,
}

/// A position in `data`, which begins at byte `base` of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    base: u64,
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(data: &'a [u8], base: u64, big_endian: bool) -> Self {
        Bytes { data, base, big_endian }
    }

    /// The file offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base
    }

    pub(crate) fn is_big_endian(&self) -> bool {
        self.big_endian
    }

    /// These bytes, read with the endianness of a block that has one of its own.
    pub(crate) fn with_endianness(self, big_endian: bool) -> Self {
        Bytes { big_endian, ..self }
    }

    pub(crate) fn left(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn take(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], Short> {
        let have = self.data.len() as u64;
        if count > have {
            return Err(Short { what, offset: self.base, need: count, have });
        }
        let (head, tail) = self.data.split_at(count as usize);
        self.data = tail;
        self.base += count;
        Ok(head)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, Short> {
        let bytes = self.take(2, what)?;
        Ok(uint(bytes, self.big_endian) as u16)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Short> {
        let bytes = self.take(4, what)?;
        Ok(uint(bytes, self.big_endian) as u32)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, Short> {
        let bytes = self.take(8, what)?;
        Ok(uint(bytes, self.big_endian))
    }

    /// Bytes up to a NUL, which is consumed.
    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a [u8], Short> {
        let have = self.data.len() as u64;
        let end = self.data.iter().position(|&byte| byte == 0);
        let end = end.ok_or(Short { what, offset: self.base, need: have + 1, have })?;
        let text = self.take(end as u64, what)?;
        self.take(1, what)?;
        Ok(text)
    }
}

/// The unsigned number in `bytes`: 1, 2, 4 or 8 of them; other widths give 0.
#[inline]
pub(crate) fn uint(bytes: &[u8], big_endian: bool) -> u64 {
    let value = match *bytes {
        [a] => return u64::from(a),
        [a, b] => {
            return u64::from(if big_endian {
                u16::from_be_bytes([a, b])
            } else {
                u16::from_le_bytes([a, b])
            });
        }
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return 0,
    };
    match (big_endian, bytes.len()) {
        (false, _) => value,
        (true, 4) => u64::from((value as u32).swap_bytes()),
        (true, _) => value.swap_bytes(),
    }
}

/// The number at `bytes[at..at + width]`, `None` past the end.
#[inline]
pub(crate) fn uint_at(bytes: &[u8], at: usize, width: usize, big_endian: bool) -> Option<u64> {
    bytes.get(at..at.checked_add(width)?).map(|field| uint(field, big_endian))
}

/// `bytes` up to the first NUL, as text; what is not UTF-8 becomes U+FFFD.
pub(crate) fn text_lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
