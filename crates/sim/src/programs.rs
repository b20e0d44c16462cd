//! Programs that run on the simulated kernel.
//!
//! | module | program |
//! |---|---|
//! | [`program`] | what a program is for an experiment: parameters, metrics, objects, estimate, run |
//! | [`measures`], [`tcp_measures`] | what programs measure alike |
//! | [`draws`] | what varies from repeat to repeat |
//! | [`policy`] | a policy of page replacement as a parameter |
//! | [`desktop`] | the tests of September 2001: applications, and streams beside music |
//! | [`hackbench`] | groups of senders and receivers over sockets or pipes |
//! | [`kbuild`] | make of a kernel: shells, compilers, their files |
//! | [`mkfs`] | processes that write file systems' tables to disks |
//! | [`netperf`] | a client and a server that pass datagrams |
//! | [`tbench`] | clients that play a file server's load over TCP |
//! | [`tmpfs_swap`] | two builds of a kernel at a time, one on tmpfs, one on a loop device, which swap |
//! | [`tree`] | a source tree, for builds |
//! | [`netio`] | one process sends over TCP, another receives |
//! | [`user`] | what the tasks of AIM7 and AIM9 are |
//! | [`repeat`] | what all programs share that repeat one operation in pinned tasks |
//! | [`repeated`] | rows of parameters, metrics and the estimate of workloads that do so |
//! | [`mappings`] | will-it-scale's mmap1, brk1 and page_fault1: mappings, the heap's end, pages |
//! | [`aim7`] | AIM7: users that run jobs of a mix |
//! | [`script`] | scripts of page accesses under memory pressure |
//! | [`recording`] | the tasks of a recording, which wait for each other |
//! | [`micro`] | pairs, batches and frees on another CPU: what a microbenchmark would measure |
//! | [`anchors`] | messages of one thread: from measured times to cycles of sends and receives |
//! | [`aim9`] | AIM9: pages, the heap's end, exec, fork |
//! | [`oltp`] | databases: direct reads from many disks; clients and a server |
//! | [`open_close`] | will-it-scale's open1: open and close of a file |
//! | [`ublk`] | block I/O of 2026 on a null device in user space |

pub mod aim7;
pub mod aim9;
pub mod anchors;
pub mod desktop;
pub mod draws;
pub mod hackbench;
pub mod kbuild;
pub mod mappings;
pub mod measures;
pub mod micro;
pub mod mkfs;
pub mod modules;
pub mod netio;
pub mod netperf;
pub mod oltp;
pub mod open_close;
pub mod policy;
pub mod program;
pub mod recording;
pub mod repeat;
pub mod repeated;
pub mod script;
pub mod tbench;
pub mod tcp_measures;
pub mod tmpfs_swap;
pub mod tree;
pub mod ublk;
pub mod user;
pub mod ycsb;
