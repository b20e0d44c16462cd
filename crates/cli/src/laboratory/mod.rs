//! The verbs of the laboratory: recordings, models, experiments, allocators side by side. The verbs outside of
//! it answer from dumps of machines.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod choice;
pub(crate) mod compare;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod generated;
pub(crate) mod import;
pub(crate) mod installed;
pub(crate) mod leak;
pub(crate) mod linux;
pub(crate) mod list;
pub(crate) mod listed;
pub(crate) mod logs;
pub(crate) mod machines;
pub(crate) mod pressure;
pub(crate) mod pulse;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sites;
pub(crate) mod suite;
pub(crate) mod top;
pub(crate) mod trees;
pub(crate) mod verify;
pub(crate) mod vm;
