//! Where answers go: standard output, files, pages. No file is written that the same command reads or writes
//! elsewhere.

use crate::outcome::Failure;
use crate::{closed, colour};
use clap::ValueEnum;
use slablab_doctor::state;
use slablab_replay::import;
use slablab_report::Answer;
use slablab_report::error::At;
use slablab_report::paint::paint;
use slablab_report::sink::Sink;
use slablab_report::{AtomicFile, end_of_links, visible};
use std::fs::{File, Metadata};
use std::io::{self, StdoutLock};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The form of a verb's answer, and the files that the verb writes it to.
#[derive(clap::Args)]
pub(crate) struct OutputArgs<F: Form> {
    /// Format of the answer
    #[arg(long, value_enum, default_value = F::DEFAULT)]
    pub(crate) format: F,
    /// Write the answer to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also write a page with charts to FILE: self-contained HTML for any browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The forms that a verb's answer has.
pub(crate) trait Form: ValueEnum + Copy + Send + Sync + 'static {
    /// The word for the usual one. It is no `default_value_t`, whose text would be that of the first verb for
    /// all verbs.
    const DEFAULT: &str = "table";
}

/// The forms of most answers.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    #[value(alias = "text")]
    Table,
    Json,
    Csv,
}

impl Form for Format {}

impl<F: Form> OutputArgs<F> {
    /// Refuses an output that is one of `inputs`, or the other output. The verbs call it before they read
    /// anything.
    pub(crate) fn check<'a>(&'a self, inputs: impl IntoIterator<Item = Named<'a>>) -> Result<(), Failure> {
        self.check_with(inputs, [])
    }

    /// As [`OutputArgs::check`], for a verb with further outputs.
    pub(crate) fn check_with<'a>(
        &'a self,
        inputs: impl IntoIterator<Item = Named<'a>>,
        others: impl IntoIterator<Item = Named<'a>>,
    ) -> Result<(), Failure> {
        let answer = self.output.as_deref().unwrap_or(Path::new("-"));
        check(inputs, std::iter::once(("-o", answer)).chain(named("--html", &self.html)).chain(others))
    }

    /// Writes the page, if there is to be one. Standard output is for the answer.
    pub(crate) fn write_html(&self, page: impl FnOnce() -> String) -> Result<(), Failure> {
        let Some(path) = &self.html else { return Ok(()) };
        expect_file(path)?;
        write_out(&page(), Some(path))
    }

    /// Writes the answer.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        write_text(text, self.format, self.output.as_deref())
    }

    /// Writes an answer in the format that was asked for, and its page, which shows `command`. With `wide` a
    /// table has all columns.
    pub(crate) fn answer(&self, answer: &Answer, command: &str, wide: bool) -> Result<(), Failure> {
        self.write_html(|| answer.page(command))?;
        self.write(&text_of(answer, self.format, wide)?)
    }
}

/// An answer in the format that was asked for. With `wide` a table has all columns.
pub(crate) fn text_of<F: ValueEnum + Copy>(
    answer: &Answer,
    format: F,
    wide: bool,
) -> Result<String, Failure> {
    let form = format.to_possible_value().expect("no form is skipped");
    let missing = || {
        let forms = F::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let forms: Vec<String> = forms.map(|form| form.get_name().to_string()).collect();
        let has: Vec<&str> =
            answer.forms().into_iter().filter(|word| forms.iter().any(|form| form == word)).collect();
        format!("--format {}: this answer has no such form: expected {}", form.get_name(), has.join(", "))
    };
    Ok(answer.text_of(form.get_name(), wide).ok_or_else(missing)?)
}

/// Writes the text of an answer in this format; a table is painted on a terminal.
pub(crate) fn write_text<F: ValueEnum + Copy>(
    text: &str,
    format: F,
    path: Option<&Path>,
) -> Result<(), Failure> {
    let file = path.filter(|path| *path != Path::new("-"));
    let is_text = format.to_possible_value().is_some_and(|value| value.get_name() == "table");
    match is_text && file.is_none() && colour::wanted() {
        true => print(|sink| sink.painted(text, paint)),
        false => write_out(text, file),
    }
}

/// A file of the command line: how it was given, as `--html` or `the input`, and its path.
pub(crate) type Named<'a> = (&'static str, &'a Path);

/// The files of an option that was given, or was not, or was given several times.
pub(crate) fn named<'a>(
    label: &'static str,
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> impl Iterator<Item = Named<'a>> {
    paths.into_iter().map(move |path| (label, path.as_path()))
}

/// Refuses an output that is an input, a file that is read in a directory which is an input, or another
/// output. Two names of one file are the same: device and inode decide. Refuses standard input as two inputs,
/// too.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = Named<'a>>,
    outputs: impl IntoIterator<Item = Named<'a>>,
) -> Result<(), Failure> {
    let inputs = inputs.into_iter().map(|(label, path)| (label, path, Place::of(path, io::stdin())));
    let mut taken: Vec<_> = inputs.collect();
    let mut streams = taken.iter().filter(|(_, path, _)| *path == Path::new("-"));
    if let (Some((one, ..)), Some((other, ..))) = (streams.next(), streams.next()) {
        let what = "standard input can be read once: expected a file for one of them";
        return Err(format!("{one} and {other} are both -: {what}").into());
    }
    let is_directory = |(_, path, _): &&(_, &Path, _)| path.is_dir();
    let directories: Vec<Named> =
        taken.iter().filter(is_directory).map(|(label, path, _)| (*label, *path)).collect();
    for (label, path) in outputs {
        if let Some((other, at)) = directories.iter().find(|(_, directory)| is_read_in(directory, path)) {
            let (path, at) = (visible::path(path), visible::path(at));
            return Err(format!(
                "{label} {path}: one of the files of {other} {at}, which would be lost; expected another file"
            )
            .into());
        }
        let place = Place::of(path, io::stdout());
        if let Some((other, at, _)) = taken.iter().find(|(.., taken)| place.is_some() && *taken == place) {
            let (shown, at) = (shown(path, "standard output"), shown(at, "standard input"));
            return Err(format!(
                "{label} {shown}: the same file as {other} {at}, which would be lost; expected another file"
            )
            .into());
        }
        taken.push((label, path, place));
    }
    Ok(())
}

/// Whether the verbs read the file at `path` if `directory` is their input.
fn is_read_in(directory: &Path, path: &Path) -> bool {
    let relative = || {
        let path = path.canonicalize().ok().or_else(|| absolute(path))?;
        path.strip_prefix(directory.canonicalize().ok()?).ok().map(Path::to_path_buf)
    };
    relative().is_some_and(|path| state::reads(&path) || import::reads(&path))
}

/// The path of a file that does not exist yet: the end of its links, its folder without links.
fn absolute(path: &Path) -> Option<PathBuf> {
    let end = end_of_links(path).ok()??;
    let folder = end.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(end.file_name()?))
}

fn shown(path: &Path, stream: &str) -> String {
    if path == Path::new("-") { format!("({stream})") } else { visible::path(path) }
}

/// What makes two names the same file.
#[derive(PartialEq, Eq)]
enum Place {
    /// A file that exists: device and inode.
    Inode(u64, u64),
    /// The path of a file that does not exist yet, its folder without links.
    Path(PathBuf),
}

impl Place {
    /// `None` for what can be read and written at once, or several times: devices, pipes, folders. `-` is
    /// `stream`.
    fn of(path: &Path, stream: impl AsFd) -> Option<Place> {
        let found = match path == Path::new("-") {
            true => File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata(),
            false => path.metadata(),
        };
        let inode = |found: Metadata| Place::Inode(found.dev(), found.ino());
        match found {
            Ok(found) => Some(found).filter(Metadata::is_file).map(inode),
            Err(_) => absolute(path).map(Place::Path),
        }
    }
}

/// Writes a result to standard output, or to a file that appears whole or not at all.
pub(crate) fn write_out(text: &str, path: Option<&Path>) -> Result<(), Failure> {
    match path.filter(|path| *path != Path::new("-")) {
        None => print(|sink| sink.text(text)),
        Some(path) => {
            let mut file = Sink::new(AtomicFile::create(path)?);
            file.text(text).at(path)?;
            Ok(file.into_inner().commit()?)
        }
    }
}

/// Prints text with clap's styles on standard output.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    print(|sink| sink.styled(text))
}

/// Writes to standard output.
fn print(write: impl FnOnce(&mut Sink<StdoutLock<'_>>) -> io::Result<()>) -> Result<(), Failure> {
    if closed::output() {
        return Err("standard output: it is closed: expected a file, a pipe or a terminal".into());
    }
    match write(&mut Sink::new(io::stdout().lock())) {
        // A reader that has seen enough (head, less) is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| format!("standard output: {error}").into()),
    }
}

pub(crate) fn expect_file(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err("--html writes a file: expected its name, found -".into());
    }
    Ok(())
}
