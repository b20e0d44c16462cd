//! The scheduler's rules as data, and its properties in a small simulation; the simulated kernel,
//! hackbench and netperf.

mod account;
mod aim;
mod balance;
mod block;
mod clean;
mod congestion;
mod desktop;
mod disk;
mod eevdf;
mod ext2;
mod fair;
mod files;
mod goodness;
mod hackbench;
mod heap;
mod kbuild;
mod kernel;
mod machine;
mod messages;
mod micro;
mod mkfs;
mod netperf;
mod oltp;
mod pressure;
mod processes;
mod recording;
mod repeated;
mod sampler;
mod script;
mod settings;
mod tcp;
mod tmpfs_swap;
mod trace;
mod waiting;
mod waking;
