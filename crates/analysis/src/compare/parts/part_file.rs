//! The file of a part: facts, with a digest over all before it. `docs/cluster.md` has the layout.

use std::collections::HashMap;
use std::path::Path;

use opscope_store::atomic_file::Creator;
use opscope_store::file_bytes::FileBytes;
use opscope_store::{StoreError, regular_file};
use opscope_tensor::Layout;
use opscope_tensor::digest::xxh3_128;

use super::facts::{Fact, FactKey, FactKind};
use crate::compare::metric::MetricId;

/// How a part begins; the number is that of the layout.
const MAGIC: &[u8; 16] = b"opscope part  1\n";
/// Bytes of the digest at the end.
const N_DIGEST_BYTES: usize = 16;
/// Bytes of the key.
const N_KEY_BYTES: usize = 16;
/// Marks the absence of a layout.
const NO_LAYOUT: u8 = u8::MAX;

/// Writes a part, which appears whole.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn write(
    creator: &Creator,
    path: &Path,
    key: [u8; N_KEY_BYTES],
    facts: &[(FactKey, Fact)],
) -> Result<(), StoreError> {
    let body = encode(key, facts);
    let digest = xxh3_128(&body);
    creator.replace_file(path, &[&body, &digest])
}

/// The facts of a part; none if there is no such file.
///
/// # Errors
/// Why the file is not a part with this key, in words.
pub(super) fn read(
    path: &Path,
    key: [u8; N_KEY_BYTES],
) -> Result<Option<Vec<(FactKey, Fact)>>, String> {
    match body_of(path, key)? {
        Some(bytes) => {
            let body = &bytes.as_ref()[..bytes.as_ref().len() - N_DIGEST_BYTES];
            decode(&body[MAGIC.len() + N_KEY_BYTES..])
                .map(Some)
                .ok_or_else(|| "its records are not what they should be".to_owned())
        }
        None => Ok(None),
    }
}

/// Size of a part's file, without opening it; 0 if it is missing.
pub(super) fn n_bytes(path: &Path) -> u64 {
    regular_file::check(path).map_or(0, |metadata| metadata.len())
}

/// Whether a part is there, and whole.
///
/// # Errors
/// Why the file is not a part with this key, in words.
pub(super) fn check(path: &Path, key: [u8; N_KEY_BYTES]) -> Result<bool, String> {
    Ok(body_of(path, key)?.is_some())
}

/// Number of facts in the records of a part, which are between its key and its digest; `None` if
/// the bytes are not records.
pub fn count_facts(records: &[u8]) -> Option<usize> {
    decode(records).map(|facts| facts.len())
}

fn body_of(path: &Path, key: [u8; N_KEY_BYTES]) -> Result<Option<FileBytes>, String> {
    let bytes = match FileBytes::open_in_dump(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let all = bytes.as_ref();
    let Some((body, digest)) = all.split_last_chunk::<N_DIGEST_BYTES>() else {
        return Err(format!("it has {} bytes", all.len()));
    };
    // Before anything else is believed of what is in it.
    if xxh3_128(body) != *digest {
        return Err("its checksum does not fit".to_owned());
    }
    // A renamed part is intact, but answers another request.
    let head = [&MAGIC[..], &key].concat();
    if !body.starts_with(&head) {
        return Err("it is no part of this unit".to_owned());
    }
    Ok(Some(bytes))
}

fn encode(key: [u8; N_KEY_BYTES], facts: &[(FactKey, Fact)]) -> Vec<u8> {
    // Few lists of metrics are different, and records refer to them.
    let mut lists: Vec<&[MetricId]> = Vec::new();
    let mut numbers: HashMap<&[MetricId], u32> = HashMap::new();
    for (_, fact) in facts {
        numbers
            .entry(fact.metrics.names())
            .or_insert_with_key(|names| {
                lists.push(names);
                lists.len() as u32 - 1
            });
    }
    let mut out = [&MAGIC[..], &key].concat();
    put_number(&mut out, lists.len() as u64);
    for names in lists {
        put_number(&mut out, names.len() as u64);
        for metric in names {
            put_bytes(&mut out, metric.name().as_bytes());
        }
    }
    put_number(&mut out, facts.len() as u64);
    for (key, fact) in facts {
        out.push(key.kind as u8);
        out.push(key.layout.map_or(NO_LAYOUT, number_of_layout));
        out.extend(key.slots.concat());
        put_number(&mut out, u64::from(numbers[fact.metrics.names()]));
        for (_, value) in fact.metrics.iter() {
            put_number(&mut out, value.to_bits());
        }
        put_number(&mut out, fact.numbers.len() as u64);
        for number in fact.numbers.iter() {
            put_number(&mut out, *number);
        }
        put_bytes(&mut out, &fact.bytes);
    }
    out
}

fn number_of_layout(layout: Layout) -> u8 {
    // Versions with other lists have other keys, so that a position is enough.
    let position = Layout::ALL.iter().position(|known| *known == layout);
    position.map_or(NO_LAYOUT, |position| position as u8)
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend(bytes);
}

/// The facts behind the head of a part; none if the bytes are none.
fn decode(bytes: &[u8]) -> Option<Vec<(FactKey, Fact)>> {
    let mut rest = Rest(bytes);
    // A name takes 8 bytes at least, and a list too.
    let n_lists = rest.count(8)?;
    let mut lists: Vec<Vec<MetricId>> = Vec::with_capacity(n_lists);
    for _ in 0..n_lists {
        let n = rest.count(8)?;
        let names = (0..n).map(|_| MetricId::from_name(std::str::from_utf8(rest.bytes()?).ok()?));
        lists.push(names.collect::<Option<_>>()?);
    }
    // Kind and layout, two digests, and three numbers of a fact that is empty otherwise.
    let n_facts = rest.count(2 + 32 + 24)?;
    let mut facts = Vec::with_capacity(n_facts);
    for _ in 0..n_facts {
        let [kind, layout] = rest.array()?;
        let kind = *FactKind::ALL.get(usize::from(kind))?;
        let layout = match layout {
            NO_LAYOUT => None,
            number => Some(*Layout::ALL.get(usize::from(number))?),
        };
        let slots = [rest.array()?, rest.array()?];
        let names = lists.get(usize::try_from(rest.number()?).ok()?)?;
        let values = names
            .iter()
            .map(|name| Some((*name, f64::from_bits(rest.number()?))));
        let metrics: Vec<(MetricId, f64)> = values.collect::<Option<_>>()?;
        let n = rest.count(8)?;
        let numbers: Vec<u64> = (0..n).map(|_| rest.number()).collect::<Option<_>>()?;
        let key = FactKey {
            kind,
            slots,
            layout,
        };
        let fact = Fact {
            metrics: metrics.into(),
            numbers: numbers.into(),
            bytes: rest.bytes()?.into(),
        };
        facts.push((key, fact));
    }
    // Bytes that are left over belong to something else.
    rest.0.is_empty().then_some(facts)
}

/// Bytes that were not taken yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    /// A number of things that take `n_bytes` each at least; none if there is no room for them.
    fn count(&mut self, n_bytes: usize) -> Option<usize> {
        let n = usize::try_from(self.number()?).ok()?;
        (n <= self.0.len() / n_bytes).then_some(n)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.count(1)?;
        let (bytes, rest) = self.0.split_at(n);
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use opscope_store::atomic_file::PermissionModes;

    use super::*;

    fn facts() -> Vec<(FactKey, Fact)> {
        let key = |kind, n: u8, layout| FactKey {
            kind,
            slots: [[n; 16], [n + 1; 16]],
            layout,
        };
        let numbers = vec![
            (MetricId::RelL2, 0.1 + 0.2),
            (MetricId::MaxAbs, f64::INFINITY),
            (MetricId::WorstTarget, -0.0),
        ];
        let difference = Fact {
            metrics: numbers.into(),
            numbers: [7, u64::MAX].into(),
            bytes: Box::default(),
        };
        let value = Fact {
            bytes: (*b"float32").into(),
            ..Fact::default()
        };
        vec![
            (key(FactKind::Difference, 1, None), difference.clone()),
            (key(FactKind::Difference, 1, Some(Layout::Nchw)), difference),
            (key(FactKind::Value, 3, None), value),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.part");
        let key = [9; 16];
        assert_eq!(read(&path, key), Ok(None));
        let creator = Creator::new(PermissionModes::default());
        write(&creator, &path, key, &facts()).unwrap();
        assert_eq!(read(&path, key), Ok(Some(facts())));
        assert_eq!(check(&path, key), Ok(true));
        assert!(read(&path, [8; 16]).is_err());
    }

    #[test]
    fn damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.part");
        let body = encode([9; 16], &facts());
        let whole = [&body[..], &xxh3_128(&body)].concat();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            assert!(read(&path, [9; 16]).is_err(), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(read(&path, [9; 16]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn hostile_records_are_refused() {
        let head = MAGIC.len() + N_KEY_BYTES;
        let body = &encode([9; 16], &facts())[head..];
        assert!(decode(body).is_some());
        // A forged checksum gets no more memory than the file has bytes.
        for at in 0..body.len() {
            let mut changed = body.to_vec();
            changed[at] = 0xff;
            let _ = decode(&changed);
            assert!(decode(&body[..at]).is_none(), "{at} bytes");
        }
    }
}
