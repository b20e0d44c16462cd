//! What a room answers here: an answer, or words.

use slablab_report::Answer;

/// An answer, and the page that is shown if it is not the answer's own.
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) page: Option<String>,
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Answered {
        Answered { answer, page: None }
    }
}

pub(crate) type Result<T> = std::result::Result<T, String>;

/// An error of a file as words.
pub(crate) fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
