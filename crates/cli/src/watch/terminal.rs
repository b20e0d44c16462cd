//! The terminal: taken on start, given back however the program ends, and what happens on it as one queue.

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGSTOP, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, channel};

/// Something happened.
pub(crate) enum Wake {
    /// A key, or another size.
    Event(Event),
    /// The keyboard is gone.
    Lost(io::Error),
    /// Somebody wants the program to end, by this signal.
    End(i32),
    /// Somebody wants the program to pause: SIGTSTP.
    Suspend,
}

/// The terminal in raw mode on its other screen. A panic gives it back too: ratatui's hook does, in any
/// thread.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Screen> {
        let terminal = ratatui::try_init();
        // It may have been taken half.
        Ok(Screen { terminal: terminal.inspect_err(|_| ratatui::restore())? })
    }

    /// Restores the terminal, stops the program until the shell continues it, and sets up the terminal again.
    pub(crate) fn suspend(self) -> io::Result<Screen> {
        drop(self);
        low_level::raise(SIGSTOP)?;
        Screen::take()
    }
}

impl Deref for Screen {
    type Target = DefaultTerminal;

    fn deref(&self) -> &DefaultTerminal {
        &self.terminal
    }
}

impl DerefMut for Screen {
    fn deref_mut(&mut self) -> &mut DefaultTerminal {
        &mut self.terminal
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // In a panic the hook has done it, and again would put the cursor over the message.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// Keys, sizes and signals in one queue, so that waiting for the next sample costs nothing. The threads that
/// fill it end with the program.
pub(crate) fn wakes() -> io::Result<Receiver<Wake>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP])?;
    let from_signals = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let wake = if signal == SIGTSTP { Wake::Suspend } else { Wake::End(signal) };
            if from_signals.send(wake).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        loop {
            let wake = event::read().map_or_else(Wake::Lost, Wake::Event);
            let lost = matches!(wake, Wake::Lost(_));
            if sender.send(wake).is_err() || lost {
                return;
            }
        }
    });
    Ok(receiver)
}
