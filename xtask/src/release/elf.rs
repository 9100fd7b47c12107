//! Reading and changing shared objects of 64-bit Linux.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Types of sections, entries and symbols of the format.
const DYNAMIC: u32 = 6;
const DYNAMIC_SYMBOLS: u32 = 11;
const NEEDED_VERSIONS: u32 = 0x6fff_fffe;
const NEEDED: u64 = 1;
const UNDEFINED: u16 = 0;
const GLOBAL: u8 = 1;
const WEAK: u8 = 2;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;

/// The bytes of a shared object or a program.
pub(super) struct Elf(Vec<u8>);

/// A table, with the offset of the texts that it names.
struct Section {
    start: usize,
    end: usize,
    texts: usize,
}

impl Elf {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let is_known = bytes.starts_with(b"\x7fELF\x02\x01");
        is_known
            .then_some(Self(bytes))
            .with_context(|| format!("`{}` is no 64-bit ELF file", path.display()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The libraries that it loads.
    pub(super) fn needed(&self) -> Result<Vec<String>> {
        let Some(section) = self.section(DYNAMIC)? else {
            return Ok(Vec::new());
        };
        let mut needed = Vec::new();
        for at in (section.start..section.end).step_by(16) {
            if self.u64(at)? == NEEDED {
                needed.push(self.text(section.texts + self.offset(at + 8)?)?);
            }
        }
        Ok(needed)
    }

    /// The newest minor version of glibc 2 whose symbols it takes.
    pub(super) fn glibc_minor(&self) -> Result<Option<u32>> {
        let Some(section) = self.section(NEEDED_VERSIONS)? else {
            return Ok(None);
        };
        let mut minors = BTreeSet::new();
        let mut library = section.start;
        loop {
            let mut version = library + self.u32(library + 8)? as usize;
            for _ in 0..self.u16(library + 2)? {
                let name = self.text(section.texts + self.u32(version + 8)? as usize)?;
                let minor = name.strip_prefix("GLIBC_2.");
                // Of 2.2.5, the 2.
                let minor = minor.and_then(|minor| minor.split('.').next()?.parse::<u32>().ok());
                minors.extend(minor);
                version += self.u32(version + 12)? as usize;
            }
            match self.u32(library + 12)? as usize {
                0 => return Ok(minors.last().copied()),
                next => library += next,
            }
        }
    }

    /// The functions and objects that it exports.
    pub(super) fn exported(&self) -> Result<BTreeSet<String>> {
        let symbols = self.symbols()?.into_iter();
        let exported = symbols.filter(|symbol| symbol.section != UNDEFINED);
        Ok(exported.map(|symbol| symbol.name).collect())
    }

    /// Makes undefined symbols weak, so that a process without them can load the file. Returns how
    /// many.
    pub(super) fn weaken(&mut self, is_optional: fn(&str) -> bool) -> Result<usize> {
        let mut n_weakened = 0;
        for symbol in self.symbols()? {
            if symbol.section == UNDEFINED && is_optional(&symbol.name) {
                let info = self
                    .0
                    .get_mut(symbol.at + 4)
                    .context("a symbol without type")?;
                if *info >> 4 == GLOBAL {
                    *info = *info & 0xf | WEAK << 4;
                    n_weakened += 1;
                }
            }
        }
        Ok(n_weakened)
    }

    fn symbols(&self) -> Result<Vec<Symbol>> {
        let section = self.section(DYNAMIC_SYMBOLS)?;
        let section = section.context("no symbols")?;
        // The first one is empty.
        let places = (section.start..section.end).step_by(SYMBOL).skip(1);
        places
            .map(|at| {
                Ok(Symbol {
                    at,
                    name: self.text(section.texts + self.u32(at)? as usize)?,
                    section: self.u16(at + 6)?,
                })
            })
            .collect()
    }

    fn section(&self, kind: u32) -> Result<Option<Section>> {
        let headers = self.offset(40)?;
        for index in 0..usize::from(self.u16(60)?) {
            let header = headers + index * SECTION_HEADER;
            if self.u32(header + 4)? == kind {
                let start = self.offset(header + 24)?;
                let texts = headers + self.u32(header + 40)? as usize * SECTION_HEADER;
                return Ok(Some(Section {
                    start,
                    end: start + self.offset(header + 32)?,
                    texts: self.offset(texts + 24)?,
                }));
            }
        }
        Ok(None)
    }

    fn text(&self, at: usize) -> Result<String> {
        let rest = self.0.get(at..).context("a name beyond the end")?;
        let text = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8(text.to_vec())?)
    }

    fn offset(&self, at: usize) -> Result<usize> {
        Ok(usize::try_from(self.u64(at)?)?)
    }

    fn u16(&self, at: usize) -> Result<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().context("a field beyond the end")
    }
}

struct Symbol {
    at: usize,
    name: String,
    /// The index of its section.
    section: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_takes_functions_of_the_c_library() {
        let mut elf = Elf::read(Path::new("/proc/self/exe")).unwrap();
        let needed = elf.needed().unwrap();
        assert!(
            needed.iter().any(|name| name.starts_with("libc.so")),
            "{needed:?}"
        );
        assert!(elf.glibc_minor().unwrap().unwrap() >= 17);
        assert_eq!(elf.weaken(|name| name == "malloc").unwrap(), 1);
        assert_eq!(elf.weaken(|name| name == "malloc").unwrap(), 0);
    }
}
