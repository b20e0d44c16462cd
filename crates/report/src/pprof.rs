//! Profiles that `pprof` and everything that reads its files shows: gzip-compressed protocol buffers.

mod messages;

use flate2::Compression;
use flate2::write::GzEncoder;
use messages::{Function, Line, Location, Message, Sample, ValueType};
use prost::Message as _;
use std::collections::HashMap;
use std::io::{self, Write};

/// What a number of a sample counts.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    name: &'static str,
    unit: &'static str,
}

impl Kind {
    /// By its name, as `inuse_space`, and its unit, as `bytes`.
    pub fn new(name: &'static str, unit: &'static str) -> Kind {
        Kind { name, unit }
    }
}

/// A profile: call chains, each with a number of every kind.
#[derive(Debug)]
pub struct Profile {
    message: Message,
    strings: HashMap<String, i64>,
    /// Locations by the text of their frame.
    frames: HashMap<String, u64>,
}

impl Profile {
    /// A profile without samples. `shown` is the kind that comes first; `period` bytes have one sample.
    pub fn new(kinds: &[Kind], shown: &str, period: u64) -> Profile {
        let message = Message { string_table: vec![String::new()], ..Message::default() };
        let strings = HashMap::from([(String::new(), 0)]);
        let mut profile = Profile { message, strings, frames: HashMap::new() };
        let kinds = kinds.iter().map(|kind| profile.kind(kind.name, kind.unit)).collect();
        profile.message.sample_type = kinds;
        profile.message.period_type = Some(profile.kind("space", "bytes"));
        profile.message.period = i64::try_from(period).unwrap_or(i64::MAX);
        profile.message.default_sample_type = profile.string(shown);
        profile
    }

    /// Adds a chain, from the outermost frame to the innermost, with its numbers in the order of the kinds. A
    /// frame is `function`, `function+0x12` or `function (file.c:12)`.
    pub fn sample<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, numbers: &[u64]) {
        let mut location_id: Vec<u64> = frames.into_iter().map(|frame| self.location(frame)).collect();
        location_id.reverse();
        let value = numbers.iter().map(|number| i64::try_from(*number).unwrap_or(i64::MAX)).collect();
        self.message.sample.push(Sample { location_id, value });
    }

    /// The file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = GzEncoder::new(out, Compression::default());
        out.write_all(&self.message.encode_to_vec())?;
        out.finish()?.flush()
    }

    fn kind(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.string(name), unit: self.string(unit) }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.to_string());
        self.strings.insert(text.to_string(), index);
        index
    }

    fn location(&mut self, frame: &str) -> u64 {
        if let Some(id) = self.frames.get(frame) {
            return *id;
        }
        let (name, file, line) = parts(frame);
        let id = self.message.location.len() as u64 + 1;
        let (name, filename) = (self.string(name), self.string(file));
        self.message.function.push(Function { id, name, system_name: name, filename });
        self.message.location.push(Location { id, line: vec![Line { function_id: id, line }] });
        self.frames.insert(frame.to_string(), id);
        id
    }
}

/// Function, file and line of a frame; an empty file and line 0 if it has none.
fn parts(frame: &str) -> (&str, &str, i64) {
    let place = || {
        let (name, rest) = frame.strip_suffix(')')?.rsplit_once(" (")?;
        let (file, line) = rest.rsplit_once(':')?;
        Some((name, file, line.parse().ok()?))
    };
    place().unwrap_or_else(|| (frame.rsplit_once("+0x").map_or(frame, |(name, _)| name), "", 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn frames_have_functions_files_and_lines() {
        for (frame, expected) in [
            ("main (a.c:12)", ("main", "a.c", 12)),
            ("run(int, char const*) (b.cc:7)", ("run(int, char const*)", "b.cc", 7)),
            ("run(int)", ("run(int)", "", 0)),
            ("malloc+0x1f", ("malloc", "", 0)),
            ("[no file]", ("[no file]", "", 0)),
        ] {
            assert_eq!(parts(frame), expected);
        }
    }

    #[test]
    fn a_profile_is_read_again() {
        let kinds = [Kind::new("alloc_objects", "count"), Kind::new("inuse_space", "bytes")];
        let mut profile = Profile::new(&kinds, "inuse_space", 65536);
        profile.sample(["main (a.c:3)", "fill+0x3"], &[5, 4096]);
        profile.sample(["main (a.c:3)"], &[1, 16]);
        let mut file = Vec::new();
        profile.write(&mut file).expect("memory");
        let mut bytes = Vec::new();
        GzDecoder::new(&*file).read_to_end(&mut bytes).expect("gzip");
        let message = Message::decode(&*bytes).expect("a profile");
        let text = |at: i64| message.string_table[at as usize].as_str();
        assert_eq!(text(0), "");
        let kinds: Vec<_> =
            message.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
        assert_eq!(kinds, [("alloc_objects", "count"), ("inuse_space", "bytes")]);
        assert_eq!((text(message.default_sample_type), message.period), ("inuse_space", 65536));
        // The innermost frame is first.
        let samples: Vec<_> =
            message.sample.iter().map(|sample| (&sample.location_id[..], &sample.value[..])).collect();
        assert_eq!(samples, [(&[2u64, 1][..], &[5i64, 4096][..]), (&[1], &[1, 16])]);
        let function = &message.function[0];
        assert_eq!((text(function.name), text(function.filename)), ("main", "a.c"));
        assert_eq!(message.location[0].line[0].line, 3);
    }
}
