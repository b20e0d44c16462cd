//! Answers of long verbs, and of verbs without the options of [`OutputArgs`].

use crate::outcome::Failure;
use crate::output::{Form, OutputArgs, expect_file, text_of, write_text};
use clap::ValueEnum;
use slablab_report::{Answer, AtomicFile};
use std::path::Path;

impl<F: Form> OutputArgs<F> {
    /// Fails now where [`OutputArgs::write`] or [`OutputArgs::write_html`] would after a long run. Leaves
    /// nothing behind.
    pub(crate) fn expect_writable(&self) -> Result<(), Failure> {
        self.html.as_deref().map_or(Ok(()), expect_file)?;
        let answer = self.output.as_deref().filter(|path| *path != Path::new("-"));
        for path in answer.into_iter().chain(self.html.as_deref()) {
            drop(AtomicFile::create(path)?);
        }
        Ok(())
    }
}

/// Writes an answer in a format to standard output or a file.
pub(crate) fn write_form<F: ValueEnum + Copy>(
    answer: &Answer,
    format: F,
    wide: bool,
    path: Option<&Path>,
) -> Result<(), Failure> {
    write_text(&text_of(answer, format, wide)?, format, path)
}
