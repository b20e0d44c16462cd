//! The options of answers with lists: how many rows, and which columns.

use crate::input::command_line;
use crate::outcome::Failure;
use crate::output::{Form, OutputArgs};
use slablab_report::Answer;

/// The form of an answer with lists, and how much of them it has.
#[derive(clap::Args)]
pub(crate) struct ListArgs<F: Form> {
    /// Number of rows to list
    #[arg(short = 'N', long, value_name = "N", default_value_t = 15, allow_negative_numbers = true)]
    pub(crate) lines: usize,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) out: OutputArgs<F>,
}

impl<F: Form> ListArgs<F> {
    /// Writes an answer as these arguments say.
    pub(crate) fn answer(&self, answer: &Answer) -> Result<(), Failure> {
        self.out.answer(answer, &command_line(), self.wide)
    }
}
