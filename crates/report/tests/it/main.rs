//! Tests of tables, pages, charts and traces.

mod movies;
mod name_check;
mod page_check;
mod pages;
mod perfetto;
mod trace_decode;
