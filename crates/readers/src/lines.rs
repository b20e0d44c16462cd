//! Lines and comma-separated rows out of a stream, in bounded memory.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use crate::error::{At, ReadError};
use crate::text::LineError;

/// Rows of a CSV with a header line. Quoted fields are understood, line breaks inside them are not.
pub(crate) struct Csv<R> {
    reader: BufReader<R>,
    header: Vec<String>,
    raw: Vec<u8>,
    row: String,
    ends: Vec<usize>,
    line: usize,
    /// Bytes of the lines read.
    bytes: u64,
    /// Whether an input that was cut off is read up to there.
    may_be_cut: bool,
    /// Where the input was cut off, in bytes.
    cut: Option<u64>,
}

/// The longest line believed.
const LINE_LIMIT: u64 = 1 << 20;

impl<R: Read> Csv<R> {
    pub(crate) fn new(reader: R) -> Result<Self, ReadError> {
        let reader = BufReader::with_capacity(1 << 16, reader);
        let (raw, row, ends) = (Vec::new(), String::new(), Vec::new());
        let mut csv = Csv {
            reader,
            header: Vec::new(),
            raw,
            row,
            ends,
            line: 0,
            bytes: 0,
            may_be_cut: false,
            cut: None,
        };
        if !csv.next()? {
            return Err(LineError::new(1, "a header line", "an empty file").into());
        }
        csv.header = csv.fields().map(str::to_string).collect();
        Ok(csv)
    }

    /// The column called `name`.
    pub(crate) fn column(&self, name: &'static str) -> Result<usize, ReadError> {
        self.find(name).ok_or_else(|| LineError::new(1, name, &self.header.join(",")).into())
    }

    /// From now on an input that was cut off is read up to there.
    pub(crate) fn read_up_to_a_cut(&mut self) {
        self.may_be_cut = true;
    }

    /// Where the input was cut off, in bytes. Known when `next` has given false.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Moves to the next row that is not empty; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, ReadError> {
        loop {
            self.raw.clear();
            let read = self.reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.raw);
            let read = match read {
                // A compressed file that was cut off: the row it ends in is not whole.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && self.may_be_cut => {
                    self.cut = Some(self.bytes + self.raw.len() as u64);
                    return Ok(false);
                }
                read => read.map_err(|source| ReadError::io(At::Line(self.line + 1), source))?,
            };
            if read == 0 {
                return Ok(false);
            }
            self.bytes += read as u64;
            self.line += 1;
            if read as u64 == LINE_LIMIT {
                return Err(LineError::new(self.line, "a line shorter than 1 MiB", "").into());
            }
            let line = self.raw.trim_ascii_end();
            if !line.is_empty() {
                split(line, &mut self.row, &mut self.ends);
                break;
            }
        }
        if !self.header.is_empty() && self.ends.len() != self.header.len() {
            let expected = "one field for each column of the header";
            return Err(LineError::new(self.line, expected, &String::from_utf8_lossy(&self.raw)).into());
        }
        Ok(true)
    }

    /// The field of the current row at `column`.
    #[inline]
    pub(crate) fn field(&self, column: usize) -> &str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.row[start..self.ends[column]]
    }

    fn fields(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|column| self.field(column))
    }

    /// A complaint about the field at `column`.
    #[cold]
    pub(crate) fn error(&self, column: usize, expected: &'static str) -> ReadError {
        LineError::new(self.line, expected, self.field(column)).into()
    }

    /// The number at `column`.
    #[inline]
    pub(crate) fn number(&self, column: usize) -> Result<u64, ReadError> {
        self.number_or_empty(column)?.ok_or_else(|| self.error(column, "a number"))
    }

    /// The number at `column`, `None` if the field is empty.
    #[inline]
    pub(crate) fn number_or_empty(&self, column: usize) -> Result<Option<u64>, ReadError> {
        let text = self.field(column);
        if text.is_empty() {
            return Ok(None);
        }
        crate::text::number(text).map(Some).ok_or_else(|| self.error(column, "a number"))
    }
}

/// Appends the fields of `line` to `row` one after another; `ends` says where each ends.
fn split(line: &[u8], row: &mut String, ends: &mut Vec<usize>) {
    row.clear();
    ends.clear();
    let line = String::from_utf8_lossy(line);
    if !line.contains('"') {
        for field in line.split(',') {
            row.push_str(field);
            ends.push(row.len());
        }
        return;
    }
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                row.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => ends.push(row.len()),
            _ => row.push(c),
        }
    }
    ends.push(row.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        #[track_caller]
        fn check(text: &str, expected: Result<&[&[&str]], &str>) {
            let read = || -> Result<Vec<Vec<String>>, ReadError> {
                let mut csv = Csv::new(text.as_bytes())?;
                let mut rows = Vec::new();
                while csv.next()? {
                    rows.push(csv.fields().map(str::to_string).collect());
                }
                Ok(rows)
            };
            match (read(), expected) {
                (Ok(rows), Ok(expected)) => assert_eq!(rows, expected),
                (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        }
        check("a,b\n1,2\n\n3,\n", Ok(&[&["1", "2"], &["3", ""]]));
        check("a,b\r\n\"x,\"\"y\",2", Ok(&[&["x,\"y", "2"]]));
        check("", Err("line 1: expected a header line, found `an empty file`"));
        check("a,b\n1\n", Err("line 2: expected one field for each column of the header, found `1\n`"));
    }
}
