//! What an input is, by its first bytes, and dumps that are one text: the output of `grep -r . FILES`, then
//! perhaps of `ls -l /sys/kernel/slab` and `date --utc`; or any text with tables of caches in it.

use std::io::{BufRead, BufReader, Cursor, Read};

use super::BundleError;
use super::builder::DumpBuilder;
use crate::compressed::Decompressed;
use crate::moment;
use crate::pasted;
use crate::slabinfo::Slabinfo;
use crate::tar::{TarError, is_tar};

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A tar: a dump or a support bundle.
    Tar,
    /// The text of /proc/slabinfo.
    Slabinfo,
    /// A slabinfo as CSV, with the kernel's column names.
    SlabinfoCsv,
    /// Lines `path:content`, as grep writes them.
    Text,
    /// Any other text: [`pasted`] looks for tables and messages in it.
    Pasted,
}

/// Bytes that tell a form.
const FIRST: u64 = 4096;
/// The longest line believed: `/proc/zoneinfo` and `/proc/slabinfo` have none of a kilobyte.
const LINE_LIMIT: u64 = 1 << 20;
/// The largest text that is searched: a log of months.
const PASTED_LIMIT: u64 = 256 << 20;

impl Form {
    /// Tells by the first kilobytes; `None` for what is no input of ours.
    pub fn of(first: &[u8]) -> Option<Form> {
        let line = first.split(|&byte| byte == b'\n').next().unwrap_or(first);
        match () {
            () if first.starts_with(b"slabinfo - version") => Some(Form::Slabinfo),
            () if first.starts_with(b"name,active_objs") => Some(Form::SlabinfoCsv),
            () if is_tar(first) => Some(Form::Tar),
            () if std::str::from_utf8(line).is_ok_and(|line| path_and_content(line).is_some()) => {
                Some(Form::Text)
            }
            () if pasted::is_text(first) && !is_recording(first) => Some(Form::Pasted),
            () => None,
        }
    }
}

impl DumpBuilder {
    /// Takes a whole input of any [`Form`] and compression. Returns the form. If the input is truncated, the
    /// builder keeps the part before the end, and returns the error.
    ///
    /// # Errors
    /// What is of no form, damaged, or larger than any kernel's.
    pub fn input(&mut self, reader: impl Read) -> Result<(Form, Option<TarError>), BundleError> {
        let io = |source| TarError::Io { offset: 0, source };
        let mut reader = Decompressed::new(reader).map_err(io)?;
        let mut first = Vec::new();
        reader.by_ref().take(FIRST).read_to_end(&mut first).map_err(io)?;
        let form = Form::of(&first).ok_or(match first[..] {
            [] => BundleError::NoBytes,
            _ if first.starts_with(b"PERFILE2") || first.starts_with(b"2ELIFREP") => {
                BundleError::Recording("perf.data")
            }
            _ if first.starts_with(crate::tracedat::MAGIC) => BundleError::Recording("trace.dat"),
            _ if first.starts_with(b"PAR1") => BundleError::Recording("trace in Parquet"),
            _ => BundleError::Unknown,
        })?;
        let mut reader = Cursor::new(first).chain(reader);
        let cut_off = match form {
            Form::Tar => self.tar(reader)?,
            Form::Text => self.text(BufReader::new(reader))?,
            Form::Slabinfo | Form::SlabinfoCsv => {
                let (mut content, limit) = (Vec::new(), Self::limit("proc/slabinfo"));
                reader.by_ref().take(limit + 1).read_to_end(&mut content).map_err(io)?;
                let size = content.len() as u64;
                if size > limit {
                    return Err(BundleError::TooLarge { path: "slabinfo".into(), size, limit });
                }
                let read = match form {
                    Form::Slabinfo => Slabinfo::parse(&content),
                    _ => Slabinfo::parse_csv(&content),
                };
                match read {
                    Ok(slabinfo) => self.slabinfo(slabinfo),
                    // Cut off, with other text around it, or a table with some of the columns.
                    Err(error) => {
                        let found = pasted::scan(&content);
                        if found.tables.is_empty() {
                            return Err(error.into());
                        }
                        self.pasted(found);
                        return Ok((Form::Pasted, None));
                    }
                }
                None
            }
            Form::Pasted => {
                let (mut content, limit) = (Vec::new(), PASTED_LIMIT);
                let read = reader.by_ref().take(limit + 1).read_to_end(&mut content);
                let cut_off =
                    match read.map_err(|source| TarError::Io { offset: content.len() as u64, source }) {
                        Err(error) if !error.is_cut_off() => return Err(error.into()),
                        read => read.err(),
                    };
                let size = content.len() as u64;
                if size > limit {
                    return Err(BundleError::TooLarge { path: "the text".into(), size, limit });
                }
                let found = pasted::scan(&content);
                if found.lines == 0 {
                    return Err(BundleError::NoBytes);
                }
                if found.is_empty() {
                    if let Some(words) = found.not_of_slabs() {
                        return Err(BundleError::OtherText(words));
                    }
                    let (line, first) = found.first_unread.unwrap_or_default();
                    return Err(BundleError::NothingPasted { lines: found.lines, line, first });
                }
                self.pasted(found);
                cut_off
            }
        };
        Ok((form, cut_off))
    }

    /// Takes lines `path:content`, and puts those of one path together: they come one after another.
    fn text(&mut self, mut reader: impl BufRead) -> Result<Option<TarError>, BundleError> {
        let (mut path, mut content) = (String::new(), Vec::new());
        let (mut line, mut offset) = (Vec::new(), 0u64);
        let cut_off = loop {
            line.clear();
            match reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
                Ok(0) => break None,
                Ok(read) => offset += read as u64,
                Err(source) => {
                    let error = TarError::Io { offset, source };
                    if error.is_cut_off() && offset > 0 {
                        break Some(error);
                    }
                    return Err(error.into());
                }
            }
            // Other files of /proc may hold anything.
            let text = String::from_utf8_lossy(&line);
            match path_and_content(&text) {
                Some((of, rest)) => {
                    if of != path {
                        self.text_file(&path, &content)?;
                        content.clear();
                        path = of.to_string();
                    }
                    content.extend_from_slice(rest.as_bytes());
                    if content.len() as u64 > Self::limit(&path) {
                        let (size, limit) = (content.len() as u64, Self::limit(&path));
                        return Err(BundleError::TooLarge { path, size, limit });
                    }
                }
                None => {
                    self.listed_line("ls -l", &text)?;
                    self.date(moment::date(&text));
                }
            }
        };
        self.text_file(&path, &content)?;
        Ok(cut_off)
    }

    fn text_file(&mut self, path: &str, content: &[u8]) -> Result<(), BundleError> {
        if path.ends_with("proc/slabinfo") && !content.starts_with(b"slabinfo - version") {
            // A part of the file, as `grep ^dentry` prints.
            let found = pasted::scan(content);
            if !found.tables.is_empty() {
                self.pasted(found);
                return Ok(());
            }
        }
        if path.is_empty() { Ok(()) } else { self.file(path, content) }
    }
}

/// Whether these are the first bytes of a recording as text: other verbs read those.
fn is_recording(first: &[u8]) -> bool {
    first.starts_with(b"PERFILE2") || first.starts_with(b"2ELIFREP") || first.starts_with(b"PAR1")
}

/// Path and content of a line of grep. Caches' names have colons too: the first colon that ends a wanted path
/// ends it.
fn path_and_content(line: &str) -> Option<(&str, &str)> {
    let colons = line.match_indices(':').take(8);
    let mut splits = colons.map(|(at, _)| (&line[..at], &line[at + 1..]));
    // The prompt and the command before a path are no part of it.
    let is_path =
        |path: &str| path.split('/').next().is_some_and(|first| !first.contains(char::is_whitespace));
    splits.find(|(path, _)| {
        path.contains('/') && is_path(path) && DumpBuilder::wants(path) && !path.contains("config.gz")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        #[track_caller]
        fn check(first: &[u8], expected: Option<Form>) {
            assert_eq!(Form::of(first), expected);
        }
        check(b"slabinfo - version: 2.1\n", Some(Form::Slabinfo));
        check(b"name,active_objs,num_objs\n", Some(Form::SlabinfoCsv));
        check(b"/sys/kernel/slab/:0000064/order:1\n", Some(Form::Text));
        check(b"proc/slabinfo:slabinfo - version: 2.1\n", Some(Form::Text));
        check(b"/etc/passwd:root\n", Some(Form::Pasted));
        check(b"# cat /proc/slabinfo:\n", Some(Form::Pasted));
        check(b"PERFILE2", None);
        check(b"", None);
        check(&[0; 1024], None);
        let mut tar = [0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        check(&tar, Some(Form::Tar));
    }
}
