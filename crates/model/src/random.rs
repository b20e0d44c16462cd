//! Random numbers of a machine: one stream from its seed.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state that grows by this, passes BigCrush.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next state of a stream, and a number of it.
pub(crate) fn split_mix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(GOLDEN);
    (state, mixed(state))
}

/// A number of a state.
pub(crate) fn mixed(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
