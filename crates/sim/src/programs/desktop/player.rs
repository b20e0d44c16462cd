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
/// What the card's own buffer holds at most: 64 KiB of 176.4 KB/s. A player with more has a buffer of its
/// own, and begins when a quarter of it is full (XMMS).
const CARD: Ps = 370_000_000_000;
/// How long music plays before the test begins (assumed).
pub(super) const BEFORE: Ps = 10_000_000_000_000;
/// How often the player looks whether the machine has booted.
const LOOK: Ps = 100_000_000_000;
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
    /// Music that a buffer would have had to hold so that the card always had some.
    pub needed: Ps,
}

impl Played {
    /// What was played since `before`; the longest gap is that of all, the needed buffer that of the step.
    pub(super) fn since(self, before: Played) -> Played {
        Played {
            skips: self.skips - before.skips,
            longest: self.longest,
            silent: self.silent - before.silent,
            music: self.music - before.music,
            needed: self.needed,
        }
    }
}

/// The card, and the buffer before it.
#[derive(Clone, Copy, Debug)]
struct Sound {
    /// Music that they hold.
    buffer: Ps,
    /// Music that the card waits for before it begins.
    begins: Ps,
    /// Music that was decoded before the card begins.
    decoded: Ps,
    /// Until when the card has music; `None`: it has not begun.
    ends: Option<Ps>,
    /// When the player began the frame that it decodes, and how far it was behind then.
    began: Ps,
    behind: Ps,
}

impl Sound {
    fn new(buffer: Ps) -> Sound {
        let begins = if buffer > CARD { buffer / 4 } else { FRAME };
        Sound { buffer: buffer.max(LEAST), begins, decoded: 0, ends: None, began: 0, behind: 0 }
    }

    /// A frame is decoded at `now`: the music that a buffer had to hold since it was full, so that the card
    /// always had some. It is a property of what the player waited for, and not of its buffer: the player
    /// is behind from a full buffer on until the buffer is full again.
    fn needs(&mut self, now: Ps) -> Ps {
        let needed = if self.ends.is_some() { self.behind + (now - self.began) } else { 0 };
        self.behind = needed.saturating_sub(FRAME);
        needed
    }

    /// The player begins the next frame at `now`, or when its buffer is no longer full.
    fn goes_on(&mut self, now: Ps, full_until: Ps) {
        self.began = now.max(full_until);
        if full_until > now {
            self.behind = 0;
        }
    }

    /// A frame is decoded at `now`: music that the card had not, and until when its buffer is too full for
    /// another one.
    fn takes(&mut self, now: Ps) -> (Ps, Ps) {
        let silent = self.ends.map_or(0, |ends| now.saturating_sub(ends));
        self.ends = match self.ends {
            Some(ends) => Some(ends.max(now) + FRAME),
            None => {
                self.decoded += FRAME;
                (self.decoded >= self.begins).then_some(now + self.decoded)
            }
        };
        (silent, self.ends.map_or(0, |ends| ends.saturating_sub(self.buffer)))
    }
}

/// Plays from the end of boot until the desktop is over. `buffer`: music that the player's own buffer and the
/// card's hold.
pub(super) fn play(desktop: &Desktop, task: &Task, music: Music, buffer: Ps) -> Result<(), NoMemory> {
    while !desktop.booted.get() {
        task.sleep(LOOK);
    }
    let memory = &desktop.memory;
    let file = memory.vm.with(|state| state.mappings.create(Kind::File, music.pages));
    let mut file = OpenFile::new(file);
    let player = App::exec(desktop, PLAYER);
    memory.processes.adopt(PLAYER.name, task.id, player.space);
    let here = Here::new(memory, task);
    let (mut frame, mut next, mut sound) = (0_u64, 0_u64, Sound::new(buffer));
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
        write(desktop, task, &mut sound);
    }
    Ok(())
}

/// Gives a frame to the card; the player sleeps while the buffer is full.
fn write(desktop: &Desktop, task: &Task, sound: &mut Sound) {
    let now = Timed::clock();
    let needed = sound.needs(now);
    let (silent, full_until) = sound.takes(now);
    sound.goes_on(now, full_until);
    let mut played = desktop.played.get();
    played.music += FRAME;
    played.skips += u64::from(silent > 0);
    played.longest = played.longest.max(silent);
    played.silent += silent;
    played.needed = played.needed.max(needed);
    desktop.played.set(played);
    if full_until > now {
        task.sleep(full_until - now);
    }
}

impl App {
    /// One of the parts of a program: its text, and its heap.
    fn touch_part(&self, desktop: &Desktop, task: &Task, part: u32) -> Result<(), NoMemory> {
        let of = |pages: u32| -> Vec<u32> { (part * pages / PARTS..(part + 1) * pages / PARTS).collect() };
        touch(desktop, task, self.text(), &of(self.size.text), Touch::Load)?;
        touch(desktop, task, self.heap, &of(self.size.heap), Touch::Store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card without a buffer behind it begins with the first frame, and waits for the third one.
    #[test]
    fn a_card_plays_at_once() {
        let mut sound = Sound::new(0);
        assert_eq!((sound.takes(0), sound.takes(0)), ((0, 0), (0, 0)));
        assert_eq!(sound.takes(2 * FRAME + 7), (7, FRAME + 7));
    }

    /// The buffer that would have sufficed is that of the stalls, whatever the player has.
    #[test]
    fn a_stall_needs_the_same_buffer_under_every_buffer() {
        let second = 1_000_000_000_000;
        for buffer in [0, 370 * second / 1_000, 3 * second] {
            let mut sound = Sound::new(buffer);
            let mut now = 0;
            let mut frame = |stalls: Ps| {
                now += stalls;
                let needed = sound.needs(now);
                let (_, full_until) = sound.takes(now);
                sound.goes_on(now, full_until);
                let is_full = full_until > now;
                now = now.max(full_until);
                (needed, is_full)
            };
            while !frame(0).1 {}
            assert_eq!(frame(second).0, second, "{buffer}: one stall of a second");
            // The next frame stalls too, before the buffer is full again.
            assert_eq!(frame(second).0, 2 * second - FRAME, "{buffer}: two stalls in a row");
            while !frame(0).1 {}
            assert_eq!(frame(second / 2).0, second / 2, "{buffer}: a stall after a full buffer");
        }
    }

    /// A player's own buffer of 4 s: music begins when 1 s is decoded, so that a slow start is no gap; then
    /// it has 1 s before it is silent.
    #[test]
    fn a_player_fills_a_quarter_first() {
        let second = 1_000_000_000_000;
        let frames = second / FRAME + 1;
        let mut sound = Sound::new(4 * second);
        for frame in 1..frames {
            assert_eq!((sound.takes(frame * second), sound.ends), ((0, 0), None));
        }
        let begin = frames * second;
        assert_eq!((sound.takes(begin).0, sound.ends), (0, Some(begin + frames * FRAME)));
        assert_eq!(sound.takes(begin + frames * FRAME).0, 0);
        assert_eq!(sound.takes(begin + frames * FRAME + FRAME + 9).0, 9);
    }
}
