//! Call sites as text, JSON, CSV, folded stacks and a page.

mod counted;
mod folded;
mod recorded;
mod recorded_page;
mod tracked;

use crate::sites::Answer;
use serde_json::Value;
use slablab_report::html::Page;

pub use folded::{Weight, sites_folded};

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.sites.1";

/// The `top` first sites as text.
pub fn sites_table(answer: &Answer, top: usize) -> String {
    match answer {
        Answer::Recorded(sites) => recorded::table(sites, top),
        Answer::Counted(sites) => counted::table(sites, top),
        Answer::Tracked(sites) => tracked::table(sites, top),
    }
}

/// What the answer lacks, then what it stands on: sentences. The former are in the text and on the page, too.
pub fn sites_remarks(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Recorded(sites) => {
            recorded::gaps(sites).into_iter().chain(sites.notes.iter().cloned()).collect()
        }
        Answer::Counted(sites) => sites.notes.clone(),
        Answer::Tracked(sites) => tracked::notes(sites),
    }
}

/// All sites as JSON.
pub fn sites_json(answer: &Answer) -> Value {
    match answer {
        Answer::Recorded(sites) => recorded::json(sites),
        Answer::Counted(sites) => counted::json(sites),
        Answer::Tracked(sites) => tracked::json(sites),
    }
}

/// All sites as CSV.
pub fn sites_csv(answer: &Answer) -> String {
    match answer {
        Answer::Recorded(sites) => recorded::csv(sites),
        Answer::Counted(sites) => counted::csv(sites),
        Answer::Tracked(sites) => tracked::csv(sites),
    }
}

/// The sites as a page, the `top` first of them in tables; `command` is what made it.
pub fn sites_page(answer: &Answer, command: &str, top: usize) -> String {
    let page: Page = match answer {
        Answer::Recorded(sites) => recorded_page::page(sites, command, top),
        Answer::Counted(sites) => counted::page(sites, command, top),
        Answer::Tracked(sites) => tracked::page(sites, command, top),
    };
    page.finish()
}
