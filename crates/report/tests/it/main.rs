//! Tests of tables, pages, charts and traces.

mod movies;
#[expect(dead_code, reason = "other crates use its check of CSV")]
mod name_check;
mod page_check;
mod pages;
mod perfetto;
mod trace_decode;
