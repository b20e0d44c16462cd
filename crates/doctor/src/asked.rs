//! What is asked of `what`: names of caches, messages of the kernel, files with either.

use crate::examine::examine;
use crate::measure::Options;
use crate::output::what_answer;
use crate::state::{self, Input, State};
use crate::what::{Corruption, Damaged, Failure, Known, Merged, corruptions_in};
use slablab_report::{Answer, Error, Result};
use slablab_slabs::Release;
use std::path::Path;

/// How many names an unknown one is answered with.
const NEAREST: usize = 5;
/// How many caches of a file are explained: the largest.
const LARGEST: usize = 5;
/// Bytes of a page where no machine is known.
const PAGE: u64 = 4096;

/// Names of caches, and messages.
pub struct Asked<'a> {
    known: &'a Known,
    names: Vec<String>,
    messages: Vec<Failure>,
    corruptions: Vec<Corruption>,
    release: Option<Release>,
}

impl<'a> Asked<'a> {
    /// Nothing yet.
    pub fn of(known: &'a Known) -> Asked<'a> {
        Asked { known, names: Vec::new(), messages: Vec::new(), corruptions: Vec::new(), release: None }
    }

    /// Whether a text is the name of a cache that is known.
    pub fn is_name(&self, text: &str) -> bool {
        Merged::parse(text).is_some() || self.known.find(text).is_some()
    }

    /// Adds a name, or a text with messages.
    pub fn text(&mut self, text: &str) {
        let (messages, corruptions) = (Failure::in_text(text, PAGE), corruptions_in(text));
        if messages.is_empty() && corruptions.is_empty() {
            self.names.push(text.to_string());
        } else {
            self.messages.extend(messages);
            self.corruptions.extend(corruptions);
        }
    }

    /// Adds all messages of a file, and the largest of its caches that are known.
    ///
    /// # Errors
    /// A file that cannot be read, or has neither.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let state = state::read(&Input { path: Some(path.into()), ..Input::default() })?;
        let failures = state.dump.pasted.iter().flat_map(|pasted| &pasted.failures).cloned();
        let failures: Vec<_> = failures.collect();
        let messages = Failure::all(&failures, state.release, state.page_size);
        let memory = state.dump.meminfo.get("MemTotal").map(|kb| kb.saturating_mul(1024));
        let messages: Vec<_> = messages.into_iter().map(|message| message.beside(memory)).collect();
        let corruptions =
            state.dump.pasted.as_ref().map(|pasted| pasted.corruptions.clone()).unwrap_or_default();
        let mut caches: Vec<_> =
            state.caches.iter().filter(|cache| self.known.find(&cache.name).is_some()).collect();
        caches.sort_by_key(|cache| std::cmp::Reverse(cache.bytes(state.page_size)));
        if messages.is_empty() && caches.is_empty() && corruptions.is_empty() {
            return Err(Error::new(slablab_report::visible::path(path), nothing(&state, path)));
        }
        self.messages.extend(messages);
        self.release = state.release.or(self.release);
        self.corruptions.extend(corruptions);
        for cache in caches.into_iter().take(LARGEST) {
            if !self.names.contains(&cache.name) {
                self.names.push(cache.name.clone());
            }
        }
        Ok(())
    }

    /// Explains the messages and the known caches, and complains of each unknown name.
    ///
    /// # Errors
    /// The complaints, if nothing is known.
    pub fn answer(self) -> std::result::Result<(Answer, Vec<String>), String> {
        let Asked { known, names, messages, corruptions, release } = self;
        let is_known = |name: &String| Merged::parse(name).is_some() || known.find(name).is_some();
        let (names, unknown): (Vec<String>, Vec<String>) = names.into_iter().partition(is_known);
        let unknown: Vec<String> = unknown.iter().map(|name| complaint(known, name)).collect();
        if names.is_empty() && messages.is_empty() && corruptions.is_empty() {
            return Err(unknown.join("\n"));
        }
        let damaged = Damaged::all(&corruptions, release);
        Ok((what_answer(known, &names, &messages, &damaged), unknown))
    }
}

/// That a file has nothing to explain; if it has the kernel's report about memory, what `doctor` says of it.
fn nothing(state: &State, path: &Path) -> String {
    let has_report = state.dump.pasted.as_ref().is_some_and(|pasted| !pasted.reports.is_empty());
    let report = has_report.then(|| examine(state, &Options::default()).ok()).flatten();
    let of_it = report.map_or(String::new(), |report| format!(", but a report: {}", report.verdict.text));
    let path = slablab_report::visible::path(path);
    format!("no message about slabs and no known cache is in it{of_it}; see slablab doctor {path}")
}

fn complaint(known: &Known, name: &str) -> String {
    let nearest = known.nearest(name, NEAREST);
    let hint = if nearest.is_empty() {
        "it is often of a module that is not in the kernel's tree; `slablab what --list` has all \
         names that are known"
            .to_string()
    } else {
        format!("did you mean {}?", nearest.join(", "))
    };
    format!("nothing is known about a cache {name:?}; {hint}")
}
