//! What results say: statistics of each cell, and published figures and relations beside the modelled ones.
//!
//! | module | answer |
//! |---|---|
//! | [`summary`] | the statistics of each cell |
//! | [`differences`] | which engines differ, cell by cell |
//! | [`verdict`] | published figures and relations: agree, sign differs, undetermined |
//! | [`pairs`] | pairs of engines that a mail tells apart |
//! | [`linear`] | numbers that grow linearly with a parameter |
//! | [`merit`] | orders of columns of figures |

pub mod differences;
pub mod linear;
pub mod merit;
pub mod pairs;
pub mod summary;
pub mod verdict;
