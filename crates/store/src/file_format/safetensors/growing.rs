//! A file whose tensors are not known when it begins.
//!
//! The header comes before the elements, so room is reserved for it and filled when the file is
//! full. Until then the file begins with zeros, which no reader of the format takes for a header.

use std::collections::HashSet;

use opscope_tensor::DType;
use serde_json::json;

use super::{ALIGN, LENGTH_BYTES, METADATA_KEY, dtype_name};

/// How the names of tensors begin that only fill up to an aligned place.
pub const PADDING_PREFIX: &str = "padding/";
/// Bytes that the entry of the longest padding takes, which every other entry leaves room for.
const PADDING_ENTRY_BYTES: usize = 160;

/// The header of a file that grows.
#[derive(Debug)]
pub struct GrowingHeader {
    /// Bytes that the header may take, its length and blanks included.
    n_reserved: usize,
    /// The entries so far, each with the place of its elements. The first one is the metadata.
    entries: Vec<HeaderEntry>,
    /// Bytes of all entries.
    n_entry_bytes: usize,
    names: HashSet<String>,
    /// Bytes of elements so far.
    n_data: u64,
}

/// An entry as text, with a comma before it.
#[derive(Debug)]
struct HeaderEntry {
    text: String,
    start: u64,
    n_bytes: u64,
}

impl HeaderEntry {
    fn is_padding(&self) -> bool {
        let name = self.text.strip_prefix(",\"");
        name.is_some_and(|name| name.starts_with(PADDING_PREFIX))
    }
}

impl GrowingHeader {
    /// A file with room for a header of `n_reserved` bytes.
    pub fn new(n_reserved: usize) -> GrowingHeader {
        let metadata = json!({ METADATA_KEY: { "format": "pt" } }).to_string();
        GrowingHeader {
            n_reserved: n_reserved.next_multiple_of(ALIGN),
            n_entry_bytes: metadata.len() - 1,
            // The object goes on behind the metadata.
            entries: vec![HeaderEntry {
                text: metadata[..metadata.len() - 1].to_owned(),
                start: u64::MAX,
                n_bytes: 0,
            }],
            names: HashSet::new(),
            n_data: 0,
        }
    }

    /// Bytes before the elements.
    pub fn n_reserved(&self) -> usize {
        self.n_reserved
    }

    /// Bytes of the whole file so far.
    pub fn n_bytes(&self) -> u64 {
        self.n_reserved as u64 + self.n_data
    }

    /// Adds a tensor of `n_bytes` at the end, and returns where in the file its elements belong;
    /// `None` if the header has no room for it. A dtype that the format lacks becomes bytes in one
    /// axis.
    pub fn add(&mut self, name: &str, dtype: DType, shape: &[usize], n_bytes: u64) -> Option<u64> {
        let dims: Vec<usize>;
        let (dtype_name, shape) = match dtype_name(dtype) {
            Some(name) => (name, shape),
            None => {
                dims = vec![usize::try_from(n_bytes).ok()?];
                ("U8", &dims[..])
            }
        };
        // The format allows no holes between tensors, so what aligns them is a tensor itself.
        let start = self.n_data.next_multiple_of(ALIGN as u64);
        let padding = (start > self.n_data).then(|| padding(self.n_data, start - self.n_data));
        let mut name = name.to_owned();
        if self.names.contains(&name) || name == METADATA_KEY || name.starts_with(PADDING_PREFIX) {
            // Two tensors of a step may have one name, as those of an operator that runs again.
            name += &format!("#{start}");
        }
        let added = entry(&name, dtype_name, shape, start, n_bytes);
        let n_added = added.text.len() + padding.as_ref().map_or(0, |entry| entry.text.len());
        let n_header = LENGTH_BYTES + self.n_entry_bytes + n_added + PADDING_ENTRY_BYTES;
        if n_header > self.n_reserved {
            return None;
        }
        self.n_entry_bytes += n_added;
        self.entries.extend(padding);
        self.entries.push(added);
        self.names.insert(name);
        self.n_data = start.checked_add(n_bytes)?;
        Some(self.n_reserved as u64 + start)
    }

    /// Makes the tensor at `offset` of the file, whose elements could not be written, padding. At
    /// the end of the file the room is free again, so that no file ends in elements that are absent.
    pub fn discard(&mut self, offset: u64) {
        let start = offset.saturating_sub(self.n_reserved as u64);
        let mut entries = self.entries.iter_mut().rev();
        let Some(entry) = entries.find(|entry| entry.start == start) else {
            return;
        };
        let discarded = padding(start, entry.n_bytes);
        // Every entry leaves room for the longest padding, and only the last one is discarded as a
        // rule; a header that has no room all the same keeps the entry.
        let n_entry_bytes = self.n_entry_bytes + discarded.text.len() - entry.text.len();
        if LENGTH_BYTES + n_entry_bytes < self.n_reserved {
            self.n_entry_bytes = n_entry_bytes;
            *entry = discarded;
        }
        while let Some(last) = self.entries.pop_if(|entry| entry.is_padding()) {
            self.n_entry_bytes -= last.text.len();
            self.n_data = last.start;
        }
    }

    /// The bytes before the elements, once the last tensor is added.
    pub fn finish(&self) -> Vec<u8> {
        let n_text = self.n_reserved - LENGTH_BYTES;
        let mut bytes = (n_text as u64).to_le_bytes().to_vec();
        for entry in &self.entries {
            bytes.extend_from_slice(entry.text.as_bytes());
        }
        bytes.push(b'}');
        bytes.resize(self.n_reserved, b' ');
        bytes
    }
}

fn padding(start: u64, n_bytes: u64) -> HeaderEntry {
    let shape = [usize::try_from(n_bytes).unwrap_or(usize::MAX)];
    entry(
        &format!("{PADDING_PREFIX}{start}"),
        "U8",
        &shape,
        start,
        n_bytes,
    )
}

fn entry(name: &str, dtype: &str, shape: &[usize], start: u64, n_bytes: u64) -> HeaderEntry {
    let (name, shape) = (json!(name), json!(shape));
    let end = start.saturating_add(n_bytes);
    let text =
        format!(r#",{name}:{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#);
    HeaderEntry {
        text,
        start,
        n_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::safetensors::decode;

    #[test]
    fn files_read_back_once_they_are_finished() {
        let mut header = GrowingHeader::new(1000);
        let tensors: [(&str, DType, &[usize], u64); 6] = [
            ("a", DType::U8, &[3], 3),
            ("b", DType::F32, &[2, 1], 8),
            ("b", DType::F32, &[], 4),
            ("packed", DType::I4, &[3], 2),
            ("none", DType::F64, &[0, 2], 0),
            (METADATA_KEY, DType::I64, &[1], 8),
        ];
        let mut expected = Vec::new();
        for (name, dtype, shape, n_bytes) in tensors {
            let offset = header.add(name, dtype, shape, n_bytes).unwrap();
            assert_eq!(offset % 8, 0);
            expected.push(offset as usize..(offset + n_bytes) as usize);
        }
        let mut file = header.finish();
        assert_eq!(file.len(), 1000);
        file.resize(header.n_bytes() as usize, 7);
        let decoded = decode(&file).unwrap();
        let tensors = decoded
            .iter()
            .filter(|tensor| !tensor.name.starts_with(PADDING_PREFIX));
        let (names, ranges): (Vec<_>, Vec<_>) = tensors
            .map(|tensor| (tensor.name.as_str(), tensor.range.clone()))
            .unzip();
        assert_eq!(
            names,
            ["a", "b", "b#16", "packed", "none", "__metadata__#32"]
        );
        assert_eq!(ranges, expected);
    }

    #[test]
    fn what_could_not_be_written_has_no_name() {
        let mut header = GrowingHeader::new(1000);
        let mut add = |name| header.add(name, DType::F32, &[1], 4).unwrap();
        let [_, b, _, d] = ["a", "b", "c", "d"].map(&mut add);
        header.discard(b);
        header.discard(d);
        assert_eq!(header.n_bytes(), d - 4, "the file ends with c");
        let mut file = header.finish();
        file.resize(header.n_bytes() as usize, 0);
        let names: Vec<_> = decode(&file)
            .unwrap()
            .into_iter()
            .map(|tensor| tensor.name)
            .collect();
        assert_eq!(names, ["a", "padding/4", "padding/8", "padding/12", "c"]);
    }

    #[test]
    fn a_file_without_any_elements_is_one() {
        let mut header = GrowingHeader::new(1000);
        let offset = header.add("a", DType::F32, &[1], 4).unwrap();
        header.discard(offset);
        assert_eq!(header.n_bytes(), 1000);
        assert_eq!(decode(&header.finish()).unwrap(), []);
        assert_eq!(header.add("b", DType::F32, &[1], 4), Some(offset));
    }

    #[test]
    fn a_full_header_takes_no_more() {
        let mut header = GrowingHeader::new(600);
        let n = (0..100).take_while(|i| header.add(&i.to_string(), DType::U8, &[1], 1).is_some());
        let n = n.count();
        assert!((1..20).contains(&n), "{n}");
        let mut file = header.finish();
        file.resize(header.n_bytes() as usize, 0);
        let read = decode(&file).unwrap();
        assert_eq!(
            read.iter()
                .filter(|tensor| !tensor.name.starts_with(PADDING_PREFIX))
                .count(),
            n
        );
    }
}
