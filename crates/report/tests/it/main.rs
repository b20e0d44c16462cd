//! Tests of tables, pages and charts.

mod page_check;
mod pages;
