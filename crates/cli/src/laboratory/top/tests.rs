//! Memory that no library wrote: an answer or an error, never a panic, and an end.

use super::directory::{Bad, Directory};
use super::noise::{AT, Noise, mix};
use super::sample;
use slablab_malloc::shared::note::*;

/// The noise is believed often enough for every part to be reached.
#[test]
fn noise_is_an_answer_or_an_error() {
    let (mut answers, mut damaged, mut caches) = (0, 0, 0);
    for seed in 1..600 {
        let mut noise = Noise::new(seed);
        // In two of three runs some words of the directory are wrong.
        for change in 0..seed % 3 {
            let at = mix(seed, change) as usize % WORDS;
            noise.directory[at] = noise.noise(u64::MAX - change);
        }
        let looked = Directory::find(&noise).and_then(|directory| sample::take(&noise, &directory));
        match looked {
            Ok(sample) => {
                answers += 1;
                caches += sample.caches.len();
            }
            Err(Bad::Damaged { .. }) => damaged += 1,
            Err(_) => {}
        }
    }
    assert!(
        answers > 20 && damaged > 20 && caches > 50,
        "{answers} answers, {damaged} damaged, {caches} caches"
    );
}

#[test]
fn each_word_of_the_directory_is_checked() {
    for at in [FRAMES_AT, MEMMAP_AT, DESCRIPTOR_BYTES_AT, OWNER_AT, AREAS_AT, NODES_AT, ROW_AT, NOTES_AT] {
        let mut noise = Noise::new(7);
        noise.directory[at] = u64::MAX;
        let found = Directory::read(&noise, AT);
        assert!(matches!(found, Err(Bad::Damaged { found: u64::MAX, .. })), "word {at}");
    }
    let mut other = Noise::new(7);
    other.directory[LAYOUT_AT] = LAYOUT + 1;
    let said = Directory::find(&other).map(drop).expect_err("another layout").to_string();
    assert!(said.contains("layout 3") && said.contains("same version"), "{said}");
    other.directory[MAGIC_AT] = 0;
    assert!(matches!(Directory::find(&other), Err(Bad::None)));
}
