//! What results say: statistics of each cell, and published figures and relations beside the modelled ones.
//!
//! | module | answer |
//! |---|---|
//! | [`summary`] | the statistics of each cell |
//! | [`differences`] | which engines differ, cell by cell |
//! | [`draws`] | two cells while all that is assumed is drawn |
//! | [`verdict`] | published figures and relations: agree, sign differs, undetermined, not resolvable |
//! | [`score`] | how many rows agree, how near sizes are, and the null answers |
//! | [`asked`] | everything that an experiment's figures ask of its draws |
//! | [`pairs`] | pairs of engines that a mail tells apart |
//! | [`linear`] | numbers that grow linearly with a parameter |
//! | [`merit`] | orders of columns of figures |

pub mod asked;
pub mod differences;
pub mod draws;
pub mod linear;
pub mod merit;
pub mod pairs;
pub mod score;
pub mod summary;
pub mod verdict;
