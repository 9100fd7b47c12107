//! Digests of bytes: MD5 and SHA-1, which other tools' files hold, XXH3, which is fast, and a hash
//! that devices compute.
//!
//! None of them is meant to withstand an attack; they only show whether two tensors are equal.

mod md5_lanes;
mod stripe_hash;
mod xxh3_pieces;

use std::io::{self, Read};

use md5::Md5;
use sha1::{Digest, Sha1};
use twox_hash::XxHash3_128;

pub use md5_lanes::md5_many;
pub use stripe_hash::stripe_hash;
pub(crate) use xxh3_pieces::Xxh3Pieces;

/// Number of bytes that are read at a time.
const READER_BYTES: usize = 1 << 18;

/// The MD5 digest. For several inputs, [`md5_many`] is several times as fast.
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// The UUID of version 3 (RFC 9562) for a name in the name space of DNS.
pub fn uuid_v3_dns(name: &[u8]) -> [u8; 16] {
    const NAME_SPACE: [u8; 16] = 0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8_u128.to_be_bytes();
    let mut uuid = md5(&[&NAME_SPACE, name].concat());
    uuid[6] = uuid[6] & 0x0f | 0x30;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// The SHA-1 digest, with the CPU's own instructions where it has them.
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    Sha1::digest(bytes).into()
}

/// The 128-bit XXH3 digest with seed 0, in the byte order in which it is written (most significant
/// byte first).
pub fn xxh3_128(bytes: &[u8]) -> [u8; 16] {
    XxHash3_128::oneshot(bytes).to_be_bytes()
}

/// [`xxh3_128`] of all bytes that a reader yields, and their number.
///
/// # Errors
/// The reader's.
pub fn xxh3_128_reader(mut reader: impl Read) -> io::Result<([u8; 16], u64)> {
    let mut hasher = XxHash3_128::new();
    let mut piece = vec![0; READER_BYTES];
    let mut n_bytes = 0;
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok((hasher.finish_128().to_be_bytes(), n_bytes)),
            Ok(n) => {
                hasher.write(&piece[..n]);
                n_bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// [`xxh3_128`] of several pieces, one after the other.
pub fn xxh3_128_parts(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = XxHash3_128::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish_128().to_be_bytes()
}

/// Lower-case hexadecimal digits.
pub fn hex(digest: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    digest
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_equal_pythons_uuid3() {
        // uuid.uuid3(uuid.NAMESPACE_DNS, …).hex
        let cases = [
            ("python.org", "6fa459eaee8a3ca4894edb77e160355e"),
            ("", "c87ee6744ddc3efea74edfe25da5d7b3"),
        ];
        for (name, digits) in cases {
            assert_eq!(hex(&uuid_v3_dns(name.as_bytes())), digits);
        }
    }

    #[test]
    fn known_answers() {
        let cases: [(&[u8], &str, &str, &str); 3] = [
            (
                b"",
                "d41d8cd98f00b204e9800998ecf8427e",
                "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                "99aa06d3014798d86001c324468d497f",
            ),
            (
                b"abc",
                "900150983cd24fb0d6963f7d28e17f72",
                "a9993e364706816aba3e25717850c26c9cd0d89d",
                "06b05ab6733a618578af5f94892f3950",
            ),
            (
                b"The quick brown fox jumps over the lazy dog",
                "9e107d9d372bb6826bd81d3542a419d6",
                "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
                "ddd650205ca3e7fa24a1cc2e3a8a7651",
            ),
        ];
        for (bytes, md5_hex, sha1_hex, xxh3_hex) in cases {
            assert_eq!(hex(&md5(bytes)), md5_hex);
            assert_eq!(hex(&sha1(bytes)), sha1_hex);
            assert_eq!(hex(&xxh3_128(bytes)), xxh3_hex);
            let read = xxh3_128_reader(bytes).unwrap();
            assert_eq!(read, (xxh3_128(bytes), bytes.len() as u64));
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(xxh3_128_parts(&[head, &[], tail]), xxh3_128(bytes));
            }
        }
    }
}
