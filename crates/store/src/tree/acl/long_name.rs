//! Names that the file system refuses.
//!
//! The digits are libstdc++'s 64-bit `std::hash<std::string>`, a MurmurHash64A with a fixed seed,
//! so that the same path has the same digits everywhere.

use std::path::Path;

/// Longest file name that common file systems accept.
pub const FILE_NAME_BYTES_MAX: usize = 255;

const SEED: u64 = 0xc70f_6907;
const MUL: u64 = 0xc6a4_a793_5bd1_e995;

/// The name to use in place of `file_name` in `dir`, if that is too long.
pub fn hash_name(dir: &Path, file_name: &str) -> Option<String> {
    if file_name.len() <= FILE_NAME_BYTES_MAX {
        return None;
    }
    let path = dir.join(file_name);
    Some(std_hash(path.as_os_str().as_encoded_bytes()).to_string())
}

/// [`hash_name`] as the writer of failing operators has it, which leaves the directory out.
pub fn hash_file_name(file_name: &str) -> Option<String> {
    (file_name.len() > FILE_NAME_BYTES_MAX).then(|| std_hash(file_name.as_bytes()).to_string())
}

/// A directory name cut to the length that the file system accepts, made unique by its hash.
///
/// CANN leaves this case to the file system, which refuses it.
pub(crate) fn shorten_component(name: String) -> String {
    if name.len() <= FILE_NAME_BYTES_MAX {
        return name;
    }
    std_hash(name.as_bytes()).to_string()
}

fn std_hash(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MUL);
    let (blocks, tail) = bytes.as_chunks::<8>();
    for block in blocks {
        let k = shift_mix(u64::from_le_bytes(*block).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ k).wrapping_mul(MUL);
    }
    if !tail.is_empty() {
        // The tail counts as a block filled up with zeros, as in `load_bytes` of libstdc++.
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MUL);
    }
    shift_mix(shift_mix(hash).wrapping_mul(MUL))
}

fn shift_mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_libstdcxx() {
        let cases = [
            ("", 6_142_509_188_972_423_790),
            ("a", 4_993_892_634_952_068_459),
            ("abc", 3_663_726_644_998_027_833),
            ("abcdefg", 16_063_891_478_991_045_295),
            ("abcdefgh", 8_664_279_048_047_335_611),
            ("abcdefghi", 13_036_955_925_923_793_583),
            ("0123456789abcdef", 10_613_591_747_391_057_286),
        ];
        for (text, hash) in cases {
            assert_eq!(std_hash(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn only_names_over_the_limit_are_replaced() {
        let dir = Path::new("/data/dump/20240102030405/0/resnet50/1/0");
        assert_eq!(hash_name(dir, &"x".repeat(255)), None);
        let name = format!("Conv2D.{}.5.1.1700000000000100", "a".repeat(300));
        let hashed = hash_name(dir, &name).unwrap();
        assert_eq!(
            hashed,
            std_hash(format!("{}/{name}", dir.display()).as_bytes()).to_string()
        );
    }
}
