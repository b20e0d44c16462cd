//! The program `slablab` as users and scripts meet it.

mod bench;
mod browser;
mod calibrate;
mod cli;
mod common;
mod doctor;
mod engines;
mod explain;
mod import;
mod input;
mod large;
mod mail;
mod messages;
mod orders;
mod outputs;
mod pressure;
mod pressure_ends;
mod pressure_views;
mod progress;
mod run;
mod screenshots;
mod suited;
mod top;
mod watch;
mod what;
mod whatif;
