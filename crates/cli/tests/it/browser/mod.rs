//! A browser without a screen: what it makes of a page.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Names that Chromium and its kin have.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Time that a page has for itself, by the browser's own clock.
const BUDGET_MS: u32 = 4000;

/// Which colours the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

/// A browser on this machine.
pub(crate) struct Browser {
    program: PathBuf,
}

/// A picture, row by row, three bytes to a pixel.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<[u8; 3]>,
}

impl Browser {
    /// The program of `SLABLAB_BROWSER`, or the first of the usual names in the path.
    ///
    /// # Panics
    /// If there is none and `SLABLAB_BROWSER_REQUIRED` is set.
    pub(crate) fn find() -> Option<Browser> {
        let named = std::env::var_os("SLABLAB_BROWSER").map(PathBuf::from);
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
        let usual = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        let program = named.into_iter().chain(usual).find(|program| program.is_file());
        let required = std::env::var_os("SLABLAB_BROWSER_REQUIRED").is_some();
        assert!(program.is_some() || !required, "SLABLAB_BROWSER_REQUIRED is set, and there is no browser");
        program.map(|program| Browser { program })
    }

    /// Opens a file of the folder in the browser, with a separate profile. An error that the page logs is an
    /// error.
    fn run(&self, folder: &Path, file: &str, scheme: Scheme, words: &[&str]) -> Output {
        let profile = folder.join(format!("{file}-{scheme:?}-profile"));
        let dark = scheme == Scheme::Dark;
        let output = Command::new(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args(["--no-first-run", "--disable-extensions", "--disable-background-networking"])
            .args(["--enable-logging=stderr", "--force-device-scale-factor=1"])
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
            .arg(format!("--virtual-time-budget={BUDGET_MS}"))
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(words)
            .arg(format!("file://{}", folder.join(file).display()))
            .output()
            .expect("the browser runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}: {said}", output.status);
        // The browser logs that frames without scripts run no scripts. This is intended.
        let complains =
            |line: &&str| line.contains(":CONSOLE") && !line.contains("'allow-scripts' permission");
        let complaint = said.lines().find(complains);
        assert!(complaint.is_none(), "{file}: {}", complaint.unwrap_or_default());
        output
    }

    /// The page as a picture of this size.
    pub(crate) fn picture(&self, folder: &Path, file: &str, scheme: Scheme, size: (usize, usize)) -> Picture {
        let path = folder.join(format!("{file}-{scheme:?}.png"));
        let (width, height) = size;
        let words = [format!("--screenshot={}", path.display()), format!("--window-size={width},{height}")];
        self.run(folder, file, scheme, &words.each_ref().map(String::as_str));
        Picture::read(&path)
    }

    /// The document after the page's scripts have run.
    pub(crate) fn dom(&self, folder: &Path, file: &str, scheme: Scheme) -> String {
        String::from_utf8(self.run(folder, file, scheme, &["--dump-dom"]).stdout).expect("UTF-8")
    }

    /// The page on paper.
    pub(crate) fn print(&self, folder: &Path, file: &str) -> Vec<u8> {
        let path = folder.join(format!("{file}.pdf"));
        let word = format!("--print-to-pdf={}", path.display());
        self.run(folder, file, Scheme::Dark, &[&word, "--no-pdf-header-footer"]);
        std::fs::read(&path).expect("the browser printed")
    }

    /// What the page measures in frames: one for each width with and one without scripts. See measure.js for
    /// the numbers.
    pub(crate) fn measure(&self, folder: &Path, file: &str, scheme: Scheme, widths: &[usize]) -> Vec<Value> {
        let page = std::fs::read_to_string(folder.join(file)).expect("the page is there");
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        let mut host = String::from(
            "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n",
        );
        for width in widths {
            for (name, sandbox) in [("scripts", ""), ("none", "sandbox=\"allow-same-origin\"")] {
                host += &format!(
                    "<iframe name=\"{name}\" {sandbox} style=\"width:{width}px;height:800px;border:0\" srcdoc=\"{page}\"></iframe>\n"
                );
            }
        }
        host += &format!("<script>{}</script>\n", include_str!("measure.js"));
        let file = format!("measure-{file}");
        std::fs::write(folder.join(&file), host).expect("written");
        let output = self.run(folder, &file, scheme, &["--dump-dom", "--window-size=1400,900"]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let said = text.split("<pre id=\"measured\">").nth(1).and_then(|rest| rest.split("</pre>").next());
        let said = said.unwrap_or_else(|| panic!("nothing measured: {}", &text[..text.len().min(400)]));
        let json =
            said.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
        serde_json::from_str(&json).expect("measure.js writes JSON")
    }
}

impl Picture {
    fn read(path: &Path) -> Picture {
        let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("its size fits into memory")];
        let info = reader.next_frame(&mut bytes).expect("a whole PNG");
        let samples = info.color_type.samples();
        assert!(samples >= 3 && info.bit_depth == png::BitDepth::Eight, "{info:?}");
        let pixels = bytes[..info.buffer_size()].chunks_exact(samples);
        Picture {
            width: info.width as usize,
            height: info.height as usize,
            pixels: pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        }
    }

    /// The pixels of a rectangle, without the part of it that is outside of the picture.
    pub(crate) fn part(&self, (left, top): (usize, usize), (right, bottom): (usize, usize)) -> Vec<[u8; 3]> {
        let rows = top.min(self.height)..bottom.min(self.height);
        let columns = left.min(self.width)..right.min(self.width);
        rows.flat_map(|y| columns.clone().map(move |x| self.pixels[y * self.width + x])).collect()
    }
}
