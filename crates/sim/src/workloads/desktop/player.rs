//! A player of music: it reads a file at the music's rate, decodes, and fills a buffer that the sound card
//! drains. A *gap* is the time for which the card had nothing to play; each is a skip.

use super::app::{App, Size, Touch, touch};
use super::{Desktop, NoMemory};
use crate::kernel::Task;
use crate::memory::Here;
use slablab_model::{Ps, Timed};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};

/// Time of an mp3 frame: 1,152 samples of 44,100 a second.
const FRAME: Ps = 26_122_448_980;
/// A file of music, which is played again at its end.
#[derive(Clone, Copy)]
pub(super) struct Music {
    /// Bits a second.
    rate: u64,
    /// What the decoder computes for a frame.
    decode: Ps,
    /// Pages of the file.
    pages: u32,
}

/// An mp3 of 8 MiB; decoding takes 5 % of the time that it plays (assumed, a processor of 800 MHz).
pub(super) const MP3: Music = Music { rate: 128_000, decode: FRAME / 20, pages: 2_048 };
/// A wav file of 64 MiB, which needs no decoding (copying it: 1 % is assumed).
pub(super) const WAV: Music = Music { rate: 1_411_200, decode: FRAME / 100, pages: 16_384 };
/// What the sound card has at least: it plays one frame while the next one is decoded.
const LEAST: Ps = 2 * FRAME;
/// Its program (1 to 2 MB are in use all the time), and parts of it that a frame touches.
const PLAYER: Size = Size { name: "player", text: 256, heap: 128 };
const PARTS: u32 = 8;

/// How music was played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Times that the card had nothing to play.
    pub skips: u64,
    /// The longest of them.
    pub longest: Ps,
    /// All of them.
    pub silent: Ps,
    /// Music that was played.
    pub music: Ps,
}

impl Played {
    /// What was played since `before`; the longest gap is that of all.
    pub(super) fn since(self, before: Played) -> Played {
        Played {
            skips: self.skips - before.skips,
            longest: self.longest,
            silent: self.silent - before.silent,
            music: self.music - before.music,
        }
    }
}

/// Plays until the desktop is over. `buffer`: music that the player's own buffer and the card's hold.
pub(super) fn play(desktop: &Desktop, task: &Task, music: Music, buffer: Ps) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let file = memory.vm.with(|state| state.mappings.create(Kind::File, music.pages));
    let mut file = OpenFile::new(file);
    let player = App::exec(desktop, PLAYER);
    memory.adopt(PLAYER.name, task.id, player.space);
    let here = Here::new(memory, task);
    let (mut frame, mut next, mut ends) = (0_u64, 0_u64, None);
    while !desktop.over.get() {
        // A frame needs the pages up to its end.
        let needs = (frame + 1) * FRAME / 1_000_000 * music.rate / 8 / 1_000_000 / 4_096;
        while next <= needs {
            let page = (next % u64::from(music.pages)) as u32;
            task.syscall(|| mm::read(&memory.vm, &here, &memory.rules, &mut file, page)).ok_or(NoMemory)?;
            next += 1;
        }
        player.touch_part(desktop, task, (frame % u64::from(PARTS)) as u32)?;
        task.compute(music.decode);
        frame += 1;
        ends = Some(write(desktop, task, ends, buffer.max(LEAST)));
    }
    Ok(())
}

/// Gives a frame to the card, which has music until `ends`; the player sleeps while the buffer is full.
/// Returns until when the card has music then.
fn write(desktop: &Desktop, task: &Task, ends: Option<Ps>, buffer: Ps) -> Ps {
    let now = Timed::clock();
    let mut played = desktop.played.get();
    played.music += FRAME;
    let ends = match ends {
        Some(ends) if now > ends => {
            played.skips += 1;
            played.longest = played.longest.max(now - ends);
            played.silent += now - ends;
            now + FRAME
        }
        Some(ends) => ends + FRAME,
        // It starts when its first frame is decoded.
        None => now + FRAME,
    };
    desktop.played.set(played);
    let full_until = ends.saturating_sub(buffer);
    if full_until > now {
        task.sleep(full_until - now);
    }
    ends
}

impl App {
    /// One of the parts of a program: its text, and its heap.
    fn touch_part(&self, desktop: &Desktop, task: &Task, part: u32) -> Result<(), NoMemory> {
        let of = |pages: u32| -> Vec<u32> { (part * pages / PARTS..(part + 1) * pages / PARTS).collect() };
        touch(desktop, task, self.text(), &of(self.size.text), Touch::Load)?;
        touch(desktop, task, self.heap, &of(self.size.heap), Touch::Store)
    }
}
