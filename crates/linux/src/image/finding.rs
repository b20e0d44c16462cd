//! Why a run ended: by what a tree's code did.

use std::fmt;

/// Why a run ended that a tree's code ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What it is: `BUG`, `WARNING`, `panic`, a bad address, a symbol without a meaning.
    pub(crate) what: String,
    /// The source line, as the tree was compiled.
    pub(crate) place: Option<String>,
    /// Messages of the kernel before it, oldest first.
    pub(crate) said: Vec<String>,
    /// Functions on the stack, innermost first.
    pub(crate) chain: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.place.iter().try_for_each(|place| write!(f, " at {place}"))?;
        if !self.chain.is_empty() {
            write!(f, " in {}", self.chain.join(" < "))?;
        }
        if !self.said.is_empty() {
            write!(f, "; the kernel said: {}", self.said.join(" | "))?;
        }
        Ok(())
    }
}
