//! The answer of the doctor: text, JSON, CSV, Prometheus metrics and a page.

mod columns;
mod document;
mod page;
mod parts;
mod prometheus;
mod said;
mod text;
mod words;

use crate::act::Report;
use crate::words::capital;
pub(super) use document::DoctorDocument;
use slablab_report::Answer;
use slablab_report::frame::Frame;
pub use text::Shown;
use words::{evidence, messages, subject};
pub(super) use words::{machine, title};

/// The answer of `doctor`: text and page have as many caches as `shown` says.
pub fn doctor_answer(report: &Report, shown: &Shown) -> Answer {
    doctor_text(report, shown)
        .document(&DoctorDocument::new(report, &messages(report)))
        .rows(doctor_frame(report))
        .form("prometheus", prometheus::metrics(report))
}

/// The answer of `doctor` as text and page, without the forms for programs: of a large slabinfo those take
/// most of the time, and gigabytes.
pub fn doctor_text(report: &Report, shown: &Shown) -> Answer {
    let (state, messages) = (report.measured.state, messages(report));
    let title = format!("Slab memory of {}", machine(state));
    let answer = Answer::new(title, format!("{}.", capital(&report.verdict.text)))
        .remarks(evidence(report))
        .line(format!("{}: {}", words::title(state), subject(report)))
        .paragraph(&page::lede(report))
        .facts(page::facts(report));
    let said = |answer| said::said(answer, report, &messages);
    let answer = if page::is_split(report) {
        of_caches(answer, report, shown, said)
    } else {
        of_counters(answer, report, shown, said)
    };
    let rounding = report.measured.rounding;
    let answer = rounding.into_iter().fold(answer, page::kmalloc);
    said::remedy(said::second(answer, report), report)
}

/// What is in slabs, cache by cache, with what is said of it. Growth leads where it is asked for: it is what
/// may be wrong.
fn of_caches(answer: Answer, report: &Report, shown: &Shown, said: impl Fn(Answer) -> Answer) -> Answer {
    let listed = |answer| text::caches(answer, report, shown);
    let held = |answer| text::split(answer, report);
    if report.measured.history.is_some() {
        let answer = text::curves(said(page::growth(answer, report, shown)), report, shown);
        let answer = page::cgroups(text::cgroups(answer, report, shown), report, shown);
        page::caches(page::split(held(listed(answer)), report), report, shown)
    } else {
        let answer = text::cgroups(listed(held(answer)), report, shown);
        let answer = page::caches(said(page::split(answer, report)), report, shown);
        page::cgroups(answer, report, shown)
    }
}

/// What the kernel's counters say, where no cache is known.
fn of_counters(answer: Answer, report: &Report, shown: &Shown, said: impl Fn(Answer) -> Answer) -> Answer {
    let meminfo = report.measured.meminfo.as_ref();
    let counted = |answer| {
        meminfo
            .into_iter()
            .fold(answer, |answer, meminfo| page::meminfo(text::meminfo(answer, meminfo), meminfo))
    };
    let cgroups = |answer| page::cgroups(text::cgroups(answer, report, shown), report, shown);
    if report.measured.history.is_some() {
        counted(cgroups(said(answer)))
    } else {
        said(cgroups(counted(answer)))
    }
}

/// Every cache in the order of the input. An unknown value is empty.
pub fn doctor_frame(report: &Report) -> Frame {
    columns::caches().frame(&report.measured.lines)
}
