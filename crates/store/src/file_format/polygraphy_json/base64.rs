//! A base64 reader, for a few bytes at a time or as many as fit.

use std::io::{self, Read};

/// Marks bytes that are not digits.
const NO_DIGIT: u8 = 0xff;
/// The value of each byte as a digit of base64.
const DIGITS: [u8; 256] = digits();

const fn digits() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < alphabet.len() {
        values[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    values
}

/// Number of bytes that a text encodes.
pub(super) fn n_bytes(text: &str) -> u64 {
    let n_padding = text
        .bytes()
        .rev()
        .take(2)
        .take_while(|byte| *byte == b'=')
        .count();
    (text.len() as u64 / 4 * 3).saturating_sub(n_padding as u64)
}

/// Decodes a text, without a copy of the whole.
pub(super) struct Base64Reader<'a> {
    /// Digits that are left, four for each group.
    text: &'a [u8],
    n_read: usize,
    /// Bytes of a group that did not fit where they were read to.
    rest: [u8; 3],
    n_rest: usize,
}

impl<'a> Base64Reader<'a> {
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the number of digits is not a multiple of four.
    pub(super) fn new(text: &'a str) -> io::Result<Base64Reader<'a>> {
        if !text.len().is_multiple_of(4) {
            return Err(invalid(format!("{} digits, no multiple of 4", text.len())));
        }
        Ok(Base64Reader {
            text: text.as_bytes(),
            n_read: 0,
            rest: [0; 3],
            n_rest: 0,
        })
    }

    /// Decodes the next group into the front of `rest`.
    fn next_group(&mut self) -> io::Result<()> {
        let Some((group, after)) = self.text.split_first_chunk::<4>() else {
            return Ok(());
        };
        let n_padding = match group {
            // Padding in the middle would hide that two texts were concatenated.
            [_, _, b'=', b'='] if after.is_empty() => 2,
            [_, _, _, b'='] if after.is_empty() => 1,
            _ => 0,
        };
        let mut bits = 0_u32;
        for (at, &byte) in group.iter().enumerate() {
            let is_padding = at >= 4 - n_padding;
            let digit = if is_padding {
                0
            } else {
                DIGITS[usize::from(byte)]
            };
            if digit == NO_DIGIT {
                let place = self.n_read + at;
                return Err(invalid(format!("byte {byte:#04x} at digit {place}")));
            }
            bits = bits << 6 | u32::from(digit);
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        (self.rest, self.n_rest) = (bytes, 3 - n_padding);
        (self.text, self.n_read) = (after, self.n_read + 4);
        Ok(())
    }
}

impl Read for Base64Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut n_done = 0;
        while n_done < out.len() {
            if self.n_rest == 0 {
                self.next_group()?;
            }
            let n = self.n_rest.min(out.len() - n_done);
            if n == 0 {
                break;
            }
            out[n_done..n_done + n].copy_from_slice(&self.rest[..n]);
            self.rest.copy_within(n.., 0);
            self.n_rest -= n;
            n_done += n;
        }
        Ok(n_done)
    }
}

fn invalid(found: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the format's own description (RFC 4648), and texts that it forbids.
    #[test]
    fn texts_become_bytes() {
        let cases: [(&str, Option<&[u8]>); 13] = [
            ("", Some(b"")),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYmFy", Some(b"foobar")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("Zg", None),
            ("Zg=", None),
            ("Zg==Zg==", None),
            ("Z===", None),
            ("Zm9v\nYm", None),
            ("Zm-_", None),
            ("Zm\u{e9}", None),
        ];
        for (text, expected) in cases {
            for n_at_once in [1, 2, 100] {
                let decoded = Base64Reader::new(text).and_then(|mut reader| {
                    let (mut bytes, mut buffer) = (Vec::new(), vec![0; n_at_once]);
                    loop {
                        match reader.read(&mut buffer)? {
                            0 => return Ok(bytes),
                            n => bytes.extend_from_slice(&buffer[..n]),
                        }
                    }
                });
                assert_eq!(decoded.ok().as_deref(), expected, "{text}");
            }
            if let Some(expected) = expected {
                assert_eq!(n_bytes(text), expected.len() as u64, "{text}");
            }
        }
    }
}
