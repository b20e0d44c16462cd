//! Call sites: of a recording, of /proc/allocinfo, of SLUB's debugging lists.

mod counted;
mod folded;
mod over_time;
mod program;
mod program_page;
mod recorded;
mod recorded_page;
mod tracked;

use crate::sites::{Program, Sites};
pub use folded::Weight;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::pprof::Profile;
use slablab_report::{Answer, Document};

/// The answer of `sites`: text and page have the first `top` sites; frames of folded stacks are as wide as
/// `weight` says.
pub fn sites_answer(sites: &Sites, top: usize, weight: Weight) -> Answer {
    match sites {
        Sites::Program(program) => program_page::blocks(program::answer(program, top, weight), program, top),
        Sites::Recorded(sites) => recorded_page::blocks(recorded::answer(sites, top, weight), sites, top),
        Sites::Counted(sites) => counted::answer(sites, top),
        Sites::Tracked(sites) => tracked::answer(sites, top),
    }
}

/// The call chains of a program as a profile that pprof reads.
pub fn sites_profile(program: &Program) -> Profile {
    program::profile(program)
}

/// The schema of call sites.
pub(in crate::output) fn schema() -> Named {
    named::<SitesDocument>()
}

/// Call sites; the key `of` says whose.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "of")]
enum SitesDocument {
    /// Of a recording of a program's malloc.
    #[serde(rename = "program")]
    Program(program::Document),
    /// Of a recording of a kernel.
    #[serde(rename = "recording")]
    Recorded(recorded::Document),
    /// Of /proc/allocinfo.
    #[serde(rename = "allocinfo")]
    Counted(counted::Document),
    /// Of SLUB's debugging lists.
    #[serde(rename = "traces")]
    Tracked(tracked::Document),
}

impl Document for SitesDocument {
    const NAME: &str = "slablab.sites.1";
    const TITLE: &str = "slablab sites: which code allocates";
}

/// A name of at most so many characters, shortened in the middle.
fn fitted(name: &str, width: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width {
        return name.into();
    }
    let (head, tail) = ((width - 2).div_ceil(2), (width - 2) / 2);
    let (head, tail): (String, String) =
        (chars[..head].iter().collect(), chars[chars.len() - tail..].iter().collect());
    format!("{head}..{tail}")
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fitted("__alloc_skb+0x10", 40), "__alloc_skb+0x10");
        assert_eq!(fitted("abcdefghijklmnop", 10), "abcd..mnop");
    }
}
