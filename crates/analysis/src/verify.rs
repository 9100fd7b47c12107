//! Verifies the elements of a dump against the digests in its rows.

use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::PassedOver;
use opscope_store::reader::IndexedTensor;
use opscope_tensor::TensorView;
use opscope_tensor::digest::{hex, md5, sha1, xxh3_128};

use crate::elements::LastFile;
use crate::error_chain::chain;
use crate::{job, read_dump};

/// Tensors per batch: neighbours are often in one file.
const N_TENSORS_AT_ONCE: usize = 32;

type DigestOf = fn(&[u8]) -> String;

/// The supported digests, by column title in lower case.
const DIGESTS: [(&str, DigestOf); 3] = [
    ("xxh3", |bytes| hex(&xxh3_128(bytes))),
    ("md5", |bytes| hex(&md5(bytes))),
    ("sha1", |bytes| hex(&sha1(bytes))),
];

/// The outcome of [`verify`].
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Tensors whose elements match the digest in their row.
    pub n_verified: u64,
    /// Bytes of their elements.
    pub n_bytes: u64,
    /// Tensors without elements, or without a digest of the file's bytes.
    pub n_without_digest: u64,
    /// Tensors whose elements do not match their row.
    pub changed: Vec<ChangedTensor>,
    /// Files and elements that could not be read.
    pub errors: Vec<String>,
    /// Files that were not read as part of the dump.
    pub passed_over: Vec<PassedOver>,
}

/// A tensor whose elements do not match its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedTensor {
    /// The file of the elements.
    pub path: PathBuf,
    /// Type, name, step and rank of the operator, and the slot.
    pub tensor: String,
    /// The digest in the row, with its kind.
    pub expected: String,
    /// The digest of the elements.
    pub found: String,
}

enum Outcome {
    Verified(u64),
    WithoutDigest,
    Changed(ChangedTensor),
    Failed(String),
}

/// Reads all elements of a dump and compares their digests with its rows.
///
/// # Errors
/// [`StoreError`] if there is nothing at `path`. All other errors are in the report.
pub fn verify(path: &Path, n_threads: usize) -> Result<VerifyReport, StoreError> {
    let index = read_dump(path, n_threads)?;
    let n_tensors = index.tensors.len();
    let chunks: Vec<Range<usize>> = (0..n_tensors)
        .step_by(N_TENSORS_AT_ONCE)
        .map(|start| start..n_tensors.min(start + N_TENSORS_AT_ONCE))
        .collect();
    // A native dump's file holds many tensors, and stays open for its neighbours.
    let outcomes = job::map(&chunks, n_threads, |chunk| {
        let mut file = LastFile::default();
        let tensors = index.tensors[chunk.clone()].iter();
        tensors
            .map(|tensor| outcome(tensor, &mut file))
            .collect::<Vec<_>>()
    });
    let mut report = VerifyReport {
        errors: index.errors.iter().map(|error| chain(error)).collect(),
        passed_over: index.passed_over,
        ..VerifyReport::default()
    };
    for outcome in outcomes.into_iter().flatten() {
        match outcome {
            Outcome::Verified(n_bytes) => {
                report.n_verified += 1;
                report.n_bytes += n_bytes;
            }
            Outcome::WithoutDigest => report.n_without_digest += 1,
            Outcome::Changed(tensor) => report.changed.push(tensor),
            Outcome::Failed(error) => report.errors.push(error),
        }
    }
    Ok(report)
}

fn outcome(tensor: &IndexedTensor, file: &mut LastFile) -> Outcome {
    // The digest covers the original dtype, but the file stores another.
    let is_converted = tensor.stored_dtype.is_some() && tensor.stored_dtype != tensor.dtype;
    if tensor.elements.is_none() || is_converted {
        return Outcome::WithoutDigest;
    }
    let cells = tensor.statistics.iter();
    let known = cells.filter_map(|(title, text)| {
        let digest = DIGESTS
            .iter()
            .find(|(kind, _)| title.trim().eq_ignore_ascii_case(kind))?;
        Some((digest, text?))
    });
    let known: Vec<_> = known.collect();
    // Other digests, such as CRC-32, do not cover the file's bytes.
    if known.is_empty() {
        return Outcome::WithoutDigest;
    }
    let read = file.with_stored(tensor, |view: TensorView<'_>| {
        let mut digests = known.iter().map(|((kind, digest), text)| {
            let (expected, found) = (text.trim(), digest(view.bytes));
            let is_same = expected.eq_ignore_ascii_case(&found);
            (!is_same).then(|| [expected, &found].map(|digest| format!("{kind} {digest}")))
        });
        (view.bytes.len() as u64, digests.find_map(|changed| changed))
    });
    match read {
        Ok((n_bytes, None)) => Outcome::Verified(n_bytes),
        Ok((_, Some([expected, found]))) => Outcome::Changed(ChangedTensor {
            path: tensor.path.to_path_buf(),
            tensor: name_of(tensor),
            expected,
            found,
        }),
        Err(error) => Outcome::Failed(chain(&error)),
    }
}

/// Type, name, slot and place of a tensor.
fn name_of(tensor: &IndexedTensor) -> String {
    let execution = &tensor.execution;
    let name = format!("{} `{}`", execution.op_type, execution.op_name);
    let slot = tensor.slot;
    let slot = slot.map(|(side, index)| format!(" {}.{index}", side.name()));
    let step = execution.model_step().map(|step| format!("step {step}"));
    let rank = execution.rank.map(|rank| format!("rank {rank}"));
    let place: Vec<String> = step.into_iter().chain(rank).collect();
    let place = match place.is_empty() {
        true => String::new(),
        false => format!(" ({})", place.join(", ")),
    };
    format!("{}{}{place}", name.trim_start(), slot.unwrap_or_default())
}
