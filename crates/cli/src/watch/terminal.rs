//! The terminal: taken on start, given back however the program ends, and what happens on it as one queue.

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Something happened.
pub(super) enum Wake {
    /// A key, or another size.
    Event(Event),
    /// The keyboard is gone.
    Lost(io::Error),
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
}

/// The terminal in raw mode on its other screen. A panic gives it back too: ratatui's hook does, in any thread.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Screen> {
        let screen = ratatui::try_init().map(|terminal| Screen { terminal });
        // It may have been taken half.
        screen.inspect_err(|_| ratatui::restore())
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
        ratatui::restore();
    }
}

/// Keys, sizes and signals in one queue, so that waiting for the next sample costs nothing.
pub(super) fn wakes() -> Result<Receiver<Wake>, ctrlc::Error> {
    let (sender, receiver) = channel();
    let signals: Sender<Wake> = sender.clone();
    // The queue may be closed already: the program is ending.
    ctrlc::set_handler(move || drop(signals.send(Wake::Signal)))?;
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
