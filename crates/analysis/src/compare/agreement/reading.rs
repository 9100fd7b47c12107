//! Reading the values of both sides, each of their contents once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use opscope_tensor::digest::xxh3_128;
use opscope_tensor::{DType, ElementCounts, Layout, Shape, Stats, TensorView, digest_and_stats};

use crate::compare::parts::facts::{self, Fact, FactKind};
use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::compare::statistics::table_stats;
use crate::elements::LastFile;
use crate::job;

/// How much larger unsigned bytes are than the signed ones of the same meaning.
const BYTE_SHIFT: f64 = 128.0;
/// Maximum bytes of a value whose elements are kept, and of all such values.
const N_FEW_BYTES_MAX: usize = 1 << 10;
const N_KEPT_BYTES_MAX: usize = 128 << 20;

/// The values of an execution's slots; none of a slot that shows nothing.
pub(super) type SlotValues = Vec<Option<Arc<ReadValue>>>;

/// A slot among those that are read: its execution, counted through both sides, and its number.
type SlotPlace = (usize, usize);

/// Contents of a dump that says where its bytes are, with what they are taken for.
type ContentsKey<'a> = (
    (&'a Path, u64),
    (Option<DType>, Option<Layout>, Option<&'a [u64]>),
);

/// The values of executions of both sides.
///
/// An output and the inputs that it becomes are one content of a native dump, and so are equal
/// tensors of two runs that a process holds: such a content is read once.
pub(super) fn read_values(
    dumps: [&ComparedDump; 2],
    runs: [&Vec<usize>; 2],
    n_threads: usize,
) -> [Vec<SlotValues>; 2] {
    let sides = dumps.into_iter().zip(runs);
    let executions: Vec<&[ExecutionSlot]> = sides
        .flat_map(|(dump, runs)| runs.iter().map(|&run| &dump.runs[run].slots[..]))
        .collect();
    // In the order of execution, the target's first, so that the result does not depend on threads.
    let mut firsts: HashMap<ContentsKey<'_>, SlotPlace> = HashMap::new();
    let mut places: Vec<Vec<SlotPlace>> = Vec::with_capacity(executions.len());
    for (nth, slots) in executions.iter().enumerate() {
        let slots = slots.iter().enumerate();
        places.push(
            slots
                .map(|(slot, of)| {
                    let own = (nth, slot);
                    key_of(of).map_or(own, |key| *firsts.entry(key).or_insert(own))
                })
                .collect(),
        );
    }
    let n_kept = AtomicUsize::new(0);
    let work: Vec<usize> = (0..executions.len()).collect();
    // By execution and not by slot: files of other forms hold all tensors of one, and stay open.
    let read: Vec<SlotValues> = job::map(&work, n_threads, |&nth| {
        let mut file = LastFile::default();
        let dump = dumps[usize::from(nth >= runs[0].len())];
        let slots = executions[nth].iter().enumerate();
        slots
            .map(|(slot, of)| {
                let is_first = places[nth][slot] == (nth, slot);
                let read = is_first.then(|| known_value(dump, of, &mut file, &n_kept));
                read.flatten().map(Arc::new)
            })
            .collect()
    });
    let mut all = places.into_iter().map(|slots| {
        let slots = slots.into_iter();
        slots.map(|(nth, slot)| read[nth][slot].clone()).collect()
    });
    let target = all.by_ref().take(runs[0].len()).collect();
    [target, all.collect()]
}

fn key_of(slot: &ExecutionSlot) -> Option<ContentsKey<'_>> {
    let number = slot.contents_number()?;
    let taken_for = (slot.dtype, slot.layout, slot.shape.as_deref());
    Some(((&slot.path, number), taken_for))
}

/// A slot's value.
pub(super) struct ReadValue {
    pub(super) dtype: Option<DType>,
    pub(super) digest: [u8; 16],
    pub(super) stats: Stats,
    pub(super) elements: Option<Arc<FewElements>>,
}

/// Elements that are kept: opening a file costs more than comparing a few of them.
pub(super) struct FewElements {
    dtype: DType,
    shape: Shape,
    layout: Layout,
    bytes: Box<[u8]>,
}

impl FewElements {
    pub(super) fn view(&self) -> TensorView<'_> {
        TensorView {
            dtype: self.dtype,
            shape: &self.shape,
            layout: self.layout,
            bytes: &self.bytes,
        }
    }

    /// A copy of elements, if they are few and `n_kept` allows it.
    fn copied(view: TensorView<'_>, n_kept: &AtomicUsize) -> Option<FewElements> {
        let n = view.bytes.len();
        let is_room = n <= N_FEW_BYTES_MAX && n_kept.fetch_add(n, Relaxed) < N_KEPT_BYTES_MAX;
        is_room.then(|| FewElements {
            dtype: view.dtype,
            shape: view.shape.clone(),
            layout: view.layout,
            bytes: view.bytes.into(),
        })
    }
}

/// A slot's value, which is read unless it is known from before.
fn known_value(
    dump: &ComparedDump,
    slot: &ExecutionSlot,
    file: &mut LastFile,
    n_kept: &AtomicUsize,
) -> Option<ReadValue> {
    if !slot.has_elements {
        return read_value(slot, file, n_kept);
    }
    let mut elements = None;
    let fact = facts::of_slot(FactKind::Value, (dump, slot), || {
        let read = read_value(slot, file, n_kept)?;
        elements = read.elements.clone();
        Some(read.to_fact())
    });
    // Small tensors have no facts: they are compared again if needed.
    Some(ReadValue {
        elements,
        ..ReadValue::from_fact(&fact?)?
    })
}

impl ReadValue {
    /// Counts and statistics, and as bytes the digest and the name of the dtype.
    fn to_fact(&self) -> Fact {
        let stats = &self.stats;
        let reals = [
            stats.min, stats.max, stats.sum, stats.mean, stats.std, stats.l1, stats.l2,
        ];
        let name = self.dtype.map_or("", DType::name).as_bytes();
        Fact {
            numbers: [&stats.counts.to_array()[..], &reals.map(f64::to_bits)]
                .concat()
                .into(),
            bytes: [&self.digest[..], name].concat().into(),
            ..Fact::default()
        }
    }

    fn from_fact(fact: &Fact) -> Option<ReadValue> {
        let (counts, reals) = fact.numbers.split_first_chunk()?;
        let reals = <[u64; 7]>::try_from(reals).ok()?.map(f64::from_bits);
        let [min, max, sum, mean, std, l1, l2] = reals;
        let (digest, name) = fact.bytes.split_first_chunk()?;
        let name = std::str::from_utf8(name).ok()?;
        Some(ReadValue {
            dtype: name.parse().ok(),
            digest: *digest,
            stats: Stats {
                counts: ElementCounts::from_array(*counts),
                min,
                max,
                sum,
                mean,
                std,
                l1,
                l2,
            },
            elements: None,
        })
    }
}

fn read_value(
    slot: &ExecutionSlot,
    file: &mut LastFile,
    n_kept: &AtomicUsize,
) -> Option<ReadValue> {
    if !slot.has_elements {
        let stats = table_stats(slot)?;
        let texts = slot.statistics.iter();
        let texts: Vec<Cow<'_, str>> = texts.map(|(_, text)| text.unwrap_or_default()).collect();
        return Some(ReadValue {
            dtype: slot.dtype,
            digest: xxh3_128(texts.join(",").as_bytes()),
            stats,
            elements: None,
        });
    }
    let read = slot.with_elements(file, |view| {
        // One pass for both, as they ask for the same bytes.
        let (digest, computed) = digest_and_stats(view);
        let stats = computed.ok()?.stats;
        Some(ReadValue {
            dtype: Some(view.dtype),
            digest,
            stats: match view.dtype {
                DType::U8 => signed(&stats),
                _ => stats,
            },
            elements: FewElements::copied(view, n_kept).map(Arc::new),
        })
    });
    read.ok()?
}

/// The statistics of unsigned bytes as those of signed ones: engines move quantised values from the
/// one to the other, with the zero point.
fn signed(stats: &Stats) -> Stats {
    let n = stats.counts.n_elements as f64;
    let shift = BYTE_SHIFT;
    let squares = stats.l2 * stats.l2 - 2.0 * shift * stats.sum + shift * shift * n;
    Stats {
        min: stats.min - shift,
        max: stats.max - shift,
        mean: stats.mean - shift,
        sum: stats.sum - shift * n,
        l1: f64::NAN,
        l2: squares.max(0.0).sqrt(),
        ..*stats
    }
}
