//! Reading: the header of a file, checked against the file's size.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use opscope_tensor::{DType, Shape};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{HEADER_BYTES_MAX, LENGTH_BYTES, METADATA_KEY, dtype_name};
use crate::FormatError;

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTensor {
    /// Its name.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// Where its elements are in the file: dense, row-major, little-endian.
    pub range: Range<usize>,
}

/// An entry of the header.
#[derive(Deserialize)]
struct HeaderEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// The entries of a header in their order. A map would lose that, and names that come twice.
struct HeaderEntries(Vec<(String, HeaderEntry)>);

impl<'de> Deserialize<'de> for HeaderEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HeaderEntries, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = HeaderEntries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an entry for each tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderEntries, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA_KEY {
                map.next_value::<IgnoredAny>()?;
            } else {
                entries.push((name, map.next_value()?));
            }
        }
        Ok(HeaderEntries(entries))
    }
}

/// The tensors of a file, in the order of its header.
///
/// # Errors
/// As for [`decode_head`].
pub fn decode(file: &[u8]) -> Result<Vec<FoundTensor>, FormatError> {
    decode_head(file, file.len())
}

/// The tensors of a file of `n_file` bytes, in the order of its header. `start` includes the header
/// unless the header is too long.
///
/// # Errors
/// [`FormatError`] if the header is damaged, names a tensor twice or a dtype that is unknown, or if
/// the tensors do not fill the rest of the file one behind the other, each with as many bytes as
/// dtype and shape take.
pub fn decode_head(start: &[u8], n_file: usize) -> Result<Vec<FoundTensor>, FormatError> {
    let Some(length) = start.first_chunk::<LENGTH_BYTES>() else {
        let found = format!("{} bytes", start.len());
        return Err(FormatError::new(0, "an 8-byte header length", found));
    };
    let length = u64::from_le_bytes(*length);
    let n_header_max = n_file.saturating_sub(LENGTH_BYTES).min(HEADER_BYTES_MAX);
    let n_header = usize::try_from(length).ok().filter(|n| *n <= n_header_max);
    let Some(n_header) = n_header else {
        let expected = format!("a header length of at most {n_header_max}");
        return Err(FormatError::new(0, expected, length.to_string()));
    };
    let data_start = LENGTH_BYTES + n_header;
    let header = start.get(LENGTH_BYTES..data_start).unwrap_or_default();
    let header: HeaderEntries = serde_json::from_slice(header)
        .map_err(|error| wrong_header("a header of named tensors", error.to_string()))?;
    let mut names = HashSet::new();
    let tensors = header.0.into_iter().map(|(name, entry)| {
        // Many JSON parsers keep the last of two equal keys, so readers would see different
        // tensors.
        if !names.insert(name.clone()) {
            return Err(wrong_header(
                "a unique name for each tensor",
                format!("`{name}` twice"),
            ));
        }
        found_tensor(name, entry, data_start, n_file)
    });
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    check_coverage(&tensors, data_start, n_file)?;
    Ok(tensors)
}

fn found_tensor(
    name: String,
    entry: HeaderEntry,
    data_start: usize,
    n_file: usize,
) -> Result<FoundTensor, FormatError> {
    let Some(&dtype) = DType::ALL
        .iter()
        .find(|dtype| dtype_name(**dtype) == Some(entry.dtype.as_str()))
    else {
        let found = format!("`{}` (of `{name}`)", entry.dtype);
        return Err(wrong_header("a dtype that is known", found));
    };
    let shape = Shape::new(entry.shape)
        .and_then(|shape| Ok((shape.n_bytes(dtype)?, shape)))
        .map_err(|error| wrong_header("a shape that fits memory", format!("{error} (`{name}`)")));
    let (n_bytes, shape) = shape?;
    let [start, end] = entry.data_offsets;
    // A sum that saturates lies beyond the file and is refused below.
    let range = data_start.saturating_add(start)..data_start.saturating_add(end);
    if end.checked_sub(start) != Some(n_bytes) || range.end > n_file {
        let expected = format!("{n_bytes} bytes of {dtype} {shape} for `{name}`");
        return Err(wrong_header(
            expected,
            format!("bytes {start} to {end} of the data"),
        ));
    }
    Ok(FoundTensor {
        name,
        dtype,
        shape,
        range,
    })
}

/// The format allows neither gaps nor overlaps, so that no byte has two meanings and none is
/// hidden.
fn check_coverage(
    tensors: &[FoundTensor],
    data_start: usize,
    n_file: usize,
) -> Result<(), FormatError> {
    let mut ranges: Vec<_> = tensors.iter().map(|tensor| &tensor.range).collect();
    // An empty tensor has to come before the one that begins at the same byte.
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut end = data_start;
    let bounds = ranges.iter().map(|range| (range.start, range.end));
    // The file's end takes part as a last, empty tensor, so bytes behind the data are a gap, too.
    for (start, next) in bounds.chain([(n_file, n_file)]) {
        if start != end {
            let expected = format!("a tensor or the end of the file at byte {end}");
            return Err(FormatError::new(
                end as u64,
                expected,
                format!("one at {start}"),
            ));
        }
        end = next;
    }
    Ok(())
}

fn wrong_header(expected: impl Into<String>, found: String) -> FormatError {
    FormatError::new(LENGTH_BYTES as u64, expected, found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::file_format::safetensors::{NamedTensor, encode};

    fn file(header: &str, n_data: usize) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), &vec![0; n_data]].concat()
    }

    #[test]
    fn files_of_other_writers_are_read() {
        // The order, the blanks and the metadata are those of `safetensors.torch.save_file`.
        let header = r#"{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[2,10]},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   "#;
        let found = decode(&file(header, 10)).unwrap();
        let start = 8 + header.len();
        let names: Vec<_> = found
            .iter()
            .map(|t| (t.name.as_str(), t.dtype, t.range.clone()))
            .collect();
        assert_eq!(
            names,
            [
                ("b", DType::F32, start + 2..start + 10),
                ("a", DType::BF16, start..start + 2)
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let entry = r#""a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#;
        let cases = [
            (format!("{{{entry}}}"), 3, "the end of the file at byte"),
            (format!("{{{entry}}}"), 1, "2 bytes of uint8 [2] for `a`"),
            (format!("{{{entry},{entry}}}"), 2, "`a` twice"),
            (r#"{"a":{"dtype":"X","shape":[],"data_offsets":[0,0]}}"#.to_owned(), 0, "`X` (of `a`)"),
            (r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}"#.to_owned(), 2, "bytes 2 to 0"),
            (
                r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#.to_owned(),
                3,
                "the end of the file",
            ),
            (
                r#"{"a":{"dtype":"U8","shape":[18446744073709551615,9],"data_offsets":[0,2]}}"#.to_owned(),
                2,
                "a shape that fits memory",
            ),
            ("[]".to_owned(), 0, "a header of named tensors"),
        ];
        for (header, n_data, expected) in cases {
            let error = decode(&file(&header, n_data)).unwrap_err().to_string();
            assert!(error.contains(expected), "{header}: {error}");
        }
        for bytes in [&b""[..], b"\x09\0\0\0\0\0\0\0{}", &[255; 16]] {
            assert!(decode(bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            sizes in proptest::collection::vec((0_usize..4, 0_usize..5), 0..5),
        ) {
            let dtypes = [DType::U8, DType::F32, DType::BF16, DType::C64];
            let bytes = [7; 64];
            let tensors: Vec<_> = sizes.iter().enumerate().map(|(i, &(dtype, n))| {
                let dtype = dtypes[dtype];
                let shape = Shape::new([n]).unwrap();
                let n_bytes = shape.n_bytes(dtype).unwrap();
                NamedTensor { name: i.to_string(), dtype, shape, bytes: &bytes[..n_bytes] }
            }).collect();
            let (mut file, parts) = encode(&[], &tensors).unwrap();
            file.extend(parts.concat());
            let found = decode(&file).unwrap();
            prop_assert_eq!(found.len(), tensors.len());
            for tensor in tensors {
                let same = found.iter().find(|found| found.name == tensor.name).unwrap();
                prop_assert_eq!((same.dtype, &same.shape), (tensor.dtype, &tensor.shape));
                prop_assert_eq!(same.range.len(), tensor.bytes.len());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
        }
    }
}
