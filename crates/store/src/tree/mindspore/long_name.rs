//! Names that the file system refuses.
//!
//! The file is named by a random number, and `mapping.csv` in its directory has the real name.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file_format::npy_zst;
use crate::tree::acl::DumpFileName;

/// Longest file name that is used as it is.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// How the names of small text files end.
const JSON_SUFFIX: &str = ".json";
/// The numbers are below this.
pub const SHORT_NAME_END: u64 = 1 << 31;

/// Makes the short names. Two of them can be equal, so a name that is taken asks for another.
#[derive(Debug, Default)]
pub struct NameDigits {
    keys: RandomState,
    n_made: AtomicU64,
}

impl NameDigits {
    /// The name to use in place of `file_name`, if that is too long.
    pub fn short_name(&self, file_name: &str) -> Option<String> {
        if file_name.len() <= FILE_NAME_BYTES_MAX {
            return None;
        }
        // The keys differ from process to process.
        let mut hasher = self.keys.build_hasher();
        hasher.write_u64(self.n_made.fetch_add(1, Ordering::Relaxed));
        let digits = hasher.finish() % SHORT_NAME_END;
        let mut known = [npy_zst::SUFFIX, JSON_SUFFIX].into_iter();
        let suffix = match known.find(|suffix| file_name.ends_with(suffix)) {
            Some(suffix) => suffix,
            // Files of the runtime end in their time.
            None if DumpFileName::parse(file_name).is_some() => "",
            None => npy_zst::PLAIN_SUFFIX,
        };
        Some(format!("{digits}{suffix}"))
    }
}
