//! /proc/modules, and `lsmod`, which has its first columns: the modules that are loaded.
//!
//! ```text
//! nf_conntrack 188416 4 nf_nat,nft_ct, Live 0xffffffffc0a00000 (OE)
//! ```

/// A module that is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its name, as the kernel writes it: with underscores.
    pub name: String,
    /// What it says of the kernel's taint: `O` for one that is not of the kernel's tree, `P` for a
    /// proprietary one.
    pub taints: String,
}

/// Reads the file. Lines of another form are left out: a dump's answer does not depend on them.
pub fn parse(content: &[u8]) -> Vec<Module> {
    let text = String::from_utf8_lossy(content);
    text.lines().filter_map(module).collect()
}

fn module(line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_string();
    // The heading of lsmod has a word here.
    words.next()?.parse::<u64>().ok()?;
    let taints = words.last().and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
    Some(Module { name, taints: taints.unwrap_or_default().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_file_and_of_lsmod() {
        let text = b"Module                  Size  Used by\nfoo 12288 0 - Live 0xffffffffc40d8000 (OE)\n\
                     nf_nat 49152 2 nft_chain_nat,xt_MASQUERADE, Live 0x0000000000000000\nxfs 2000 1\nbroken\n";
        let found: Vec<(String, String)> =
            parse(text).into_iter().map(|found| (found.name, found.taints)).collect();
        let expected = [("foo", "OE"), ("nf_nat", ""), ("xfs", "")];
        assert_eq!(found, expected.map(|(name, taints)| (name.to_string(), taints.to_string())));
    }
}
