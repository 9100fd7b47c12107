//! Decides whether tensors are equal, from digests, elements or statistics.

use opscope_store::record::SlotSide;
use opscope_tensor::digest::{xxh3_128, xxh3_128_parts};

use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution};
use opscope_analysis::elements::LastFile;
use opscope_analysis::job;
use opscope_analysis::statistics_of;
use opscope_analysis::survey::non_finite;

/// Column titles of digests, in lower case.
const DIGESTS: [&str; 5] = ["xxh3", "sha1", "md5", "crc-32", "crc32"];
/// Executions per batch: neighbours are often in one file.
const N_AT_ONCE: usize = 64;

/// A fingerprint of a tensor. Equal marks mean equal contents, as certain as their source allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentMark {
    /// The source of the mark. Marks of different kinds are not comparable.
    pub kind: MarkKind,
    digest: [u8; 16],
}

/// The source of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// Every bit, from a digest in the dump or the elements.
    Bits,
    /// Extremes, mean, norm and counts. Tensors that differ in a few bits may have the same.
    Statistics,
}

/// The marks of all tensors of a dump.
#[derive(Debug, Default)]
pub struct ContentMarks {
    /// Indexed by execution and slot; `None` if the content is unknown.
    marks: Vec<Vec<Option<ContentMark>>>,
    /// Tensors whose elements could not be read.
    pub n_unread: u64,
}

impl ContentMarks {
    /// Uses digests if the dump has them, else reads elements on `n_threads` threads. Tensors
    /// without either get marks from their statistics.
    pub fn read(dump: &ComparedDump, n_threads: usize) -> ContentMarks {
        // Batches keep threads from opening the same files again and again.
        let numbers: Vec<usize> = (0..dump.runs.len()).collect();
        let chunks: Vec<&[usize]> = numbers.chunks(N_AT_ONCE).collect();
        let parts = job::map(&chunks, n_threads, |chunk| {
            let mut file = LastFile::default();
            let mut n_unread = 0;
            let marks = chunk.iter().map(|&run| {
                let slots = dump.runs[run].slots.iter();
                let marks = slots.map(|slot| mark(slot, Some((&mut file, &mut n_unread))));
                marks.collect::<Vec<_>>()
            });
            (marks.collect::<Vec<_>>(), n_unread)
        });
        let mut all = ContentMarks::default();
        for (marks, n_unread) in parts {
            all.marks.extend(marks);
            all.n_unread += n_unread;
        }
        all
    }

    /// The mark of a slot of an execution.
    pub fn get(&self, run: usize, slot: usize) -> Option<ContentMark> {
        self.marks.get(run)?.get(slot).copied().flatten()
    }

    /// One mark for all tensors on a side of an execution. `None` if any of them is unknown or
    /// there are none.
    pub fn of_side(&self, dump: &ComparedDump, run: usize, side: SlotSide) -> Option<ContentMark> {
        let slots = dump.runs[run].slots.iter().enumerate();
        let mut slots = slots.filter(|(_, slot)| slot.side == side).peekable();
        slots.peek()?;
        joined(slots.map(|(at, slot)| (slot, self.get(run, at))))
    }
}

/// The mark of an execution's outputs, and whether they are free of NaN and infinities. Elements
/// are read if the dump has no digests.
pub(super) fn mark_of_outputs(run: &OperatorExecution) -> Option<(ContentMark, bool)> {
    let outputs = run
        .slots
        .iter()
        .filter(|slot| slot.side == SlotSide::Output);
    let outputs: Vec<&ExecutionSlot> = outputs.collect();
    // Checked before marks are computed: both may read the elements, and the file stays open.
    let is_finite = outputs.iter().all(|slot| non_finite(slot) == Some([0, 0]));
    outputs.first()?;
    let mut file = LastFile::default();
    let marks = outputs
        .into_iter()
        .map(|slot| (slot, mark(slot, Some((&mut file, &mut 0)))));
    Some((joined(marks)?, is_finite))
}

/// Combines the marks of several slots.
fn joined<'a>(
    slots: impl Iterator<Item = (&'a ExecutionSlot, Option<ContentMark>)>,
) -> Option<ContentMark> {
    let mut bytes = Vec::new();
    let mut kind = MarkKind::Bits;
    for (slot, mark) in slots {
        let mark = mark?;
        kind = kind.max(mark.kind);
        bytes.extend(mark.digest);
        // Equal bytes with another shape are another tensor.
        for extent in slot.shape.iter().flatten() {
            bytes.extend(extent.to_le_bytes());
        }
        bytes.extend(slot.dtype_name.as_bytes());
        bytes.push(0);
    }
    let digest = xxh3_128(&bytes);
    Some(ContentMark { kind, digest })
}

/// The mark of a tensor; elements are read if `reading` is set.
fn mark(slot: &ExecutionSlot, reading: Option<(&mut LastFile, &mut u64)>) -> Option<ContentMark> {
    // A digest avoids reading the elements, which are most of a dump's bytes.
    let digest = slot.statistics.iter().find_map(|(title, text)| {
        let title = title.trim().to_lowercase();
        text.filter(|text| DIGESTS.contains(&title.as_str()) && !text.is_empty())
    });
    if let Some(digest) = digest {
        // Hashing makes all digests the same length. Lower case, because tools disagree on
        // hexadecimal case.
        let digest = xxh3_128(digest.to_lowercase().as_bytes());
        return Some(ContentMark {
            kind: MarkKind::Bits,
            digest,
        });
    }
    if let Some((file, n_unread)) = reading
        && slot.has_elements
    {
        match slot.with_elements(file, |view| xxh3_128(view.bytes)) {
            Ok(digest) => {
                return Some(ContentMark {
                    kind: MarkKind::Bits,
                    digest,
                });
            }
            Err(_) => *n_unread += 1,
        }
    }
    // The last resort: a few flipped bits may not show in these numbers.
    let cells = statistics_of(slot);
    let [min, max, _, mean, _, _, l2] = cells.numbers;
    let numbers = [min, max, mean, l2];
    // A single maximum is often equal by chance.
    if numbers.iter().flatten().count() < 3 {
        return None;
    }
    let numbers = numbers.map(|number| number.map_or([0; 8], |n| n.to_bits().to_le_bytes()));
    let counts = cells.counts.map(|count| count.unwrap_or(-1).to_le_bytes());
    let digest = xxh3_128_parts(&[numbers.as_flattened(), counts.as_flattened()]);
    Some(ContentMark {
        kind: MarkKind::Statistics,
        digest,
    })
}
