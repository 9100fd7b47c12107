//! The rows of a part.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use opscope_store::file_format::graph_json::GraphOperator;
use opscope_store::reader::{ElementsPlace, FileKind, IndexedTensor, NativeStep};
use opscope_store::record::SlotSide;
use opscope_store::slot_table::SlotRow;
use opscope_store::tree::native::file_below;
use opscope_store::{SharedText, StoreError};

use opscope_analysis::compare::matching::SlotRef;
use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, positions};
use opscope_analysis::error_chain::chain;
use opscope_analysis::statistics_of;

/// The title of the digest in the tables.
const DIGEST: &str = "xxh3";

/// Rows in execution order, and the place of their elements.
#[derive(Default)]
pub(super) struct PartRows<'a> {
    pub(super) rows: Vec<SlotRow>,
    /// The slot of each row; empty for the native form.
    pub(super) slots: Vec<&'a ExecutionSlot>,
    /// For each input produced in this part, its row and the output's row.
    pub(super) edges: Vec<(usize, usize)>,
    /// The base directory of file names in rows of the native form.
    pub(super) run_dir: std::path::PathBuf,
    pub(super) problems: Vec<String>,
}

/// Reads the rows of a step of the native form.
///
/// # Errors
/// [`StoreError`] if its file cannot be read.
pub(super) fn of_native(step: &NativeStep, run: &str) -> Result<PartRows<'static>, StoreError> {
    let (mut rows, damage) = step.read_rows()?;
    let run: Arc<str> = run.into();
    let mut position = -1;
    let mut last = None;
    for row in &mut rows {
        row.run = Some(run.clone());
        // The rows of a journal have no position yet; every execution has a unique time.
        if last != Some(row.time_us) {
            last = Some(row.time_us);
            position += 1;
        }
        row.position.get_or_insert(position);
    }
    Ok(PartRows {
        edges: edges_by_name(&rows),
        rows,
        run_dir: step.run_dir.clone(),
        problems: damage.iter().map(|error| chain(error)).collect(),
        ..PartRows::default()
    })
}

/// Matches inputs with the latest output of their name.
fn edges_by_name(rows: &[SlotRow]) -> Vec<(usize, usize)> {
    let mut made: HashMap<&Arc<str>, usize> = HashMap::new();
    let mut edges = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(value) = &row.value else {
            continue;
        };
        // Inputs come before the outputs of their execution, so an in-place operator is not its own
        // producer.
        if row.side.as_deref() == Some(SlotSide::Output.name()) {
            made.insert(value, index);
        } else if let Some(&producer) = made.get(value) {
            edges.push((index, producer));
        }
    }
    edges
}

/// Builds the rows of executions of another form.
pub(super) fn of_runs<'a>(
    side: &'a ComparedDump,
    runs: &[usize],
    root: &Path,
    label: &str,
) -> PartRows<'a> {
    let mut found = PartRows::default();
    let mut row_of: HashMap<SlotRef, usize> = HashMap::new();
    let label: Arc<str> = label.into();
    for (position, &index) in runs.iter().enumerate() {
        let run = &side.runs[index];
        let common = SlotRow {
            run: Some(label.clone()),
            position: i64::try_from(position).ok(),
            ..execution_row(side, index)
        };
        let names = value_names(side, index);
        for (at, slot) in run.slots.iter().enumerate() {
            row_of.insert(
                SlotRef {
                    run: index,
                    slot: at,
                },
                found.rows.len(),
            );
            let mut row = SlotRow {
                value: names.get(&at).map(|name| name.as_str().into()),
                ..common.clone()
            };
            describe(&mut row, slot, root);
            found.rows.push(row);
            found.slots.push(slot);
            found.problems.extend(slot.problem.clone());
        }
    }
    let inputs = row_of.iter().filter_map(|(slot, &row)| {
        // A producer in another part has no row here.
        let producer = side.producer_of(*slot)?;
        Some((row, *row_of.get(&producer)?))
    });
    found.edges = inputs.collect();
    // A map's order differs between runs.
    found.edges.sort_unstable();
    found
}

/// The cells shared by all tensors of an execution.
fn execution_row(side: &ComparedDump, index: usize) -> SlotRow {
    let run = &side.runs[index];
    let text = |text: &str| (!text.is_empty()).then(|| Arc::<str>::from(text));
    let described = side.description_of(index);
    // The description of another graph is ignored, so that no operator gets the wrong name.
    let operator = described.and_then(|(_, graph, operator)| graph.operators.get(operator));
    // Dumps of msProbe store it with each call.
    let recorded = run.call_site.as_deref().cloned().unwrap_or_default();
    let collective = run.collective.as_ref();
    SlotRow {
        rank: run.place.rank.map(Into::into),
        model: run.place.model.as_deref().map(Into::into),
        graph: described.and_then(|(_, graph, _)| text(&graph.name)),
        load: run.place.model_id.map(Into::into),
        step: run.place.step.and_then(|step| i64::try_from(step).ok()),
        call: i64::try_from(run.repeat).ok(),
        kind: Some(run.kind.name().into()),
        op_type: text(&run.op_type),
        op_name: text(&run.op_name),
        module: operator
            .and_then(|operator| call_site(operator, &operator.module, "module"))
            .or_else(|| text(&recorded.module)),
        source: operator
            .and_then(|operator| call_site(operator, &operator.source, "source"))
            .or_else(|| text(&recorded.source)),
        collective: collective.map(|note| note.kind.to_string().into()),
        group_ranks: collective.and_then(|note| text(&note.ranks_text())),
        task: run.task_id.map(Into::into),
        time_us: run.timestamp_us.and_then(|time| i64::try_from(time).ok()),
        ..SlotRow::default()
    }
}

/// One part of an operator's call site. Descriptions of eager steps store it in the attributes.
fn call_site(operator: &GraphOperator, known: &str, attribute: &str) -> Option<Arc<str>> {
    let found = operator
        .attributes
        .get(attribute)
        .map_or("", String::as_str);
    let text = if known.is_empty() { found } else { known };
    (!text.is_empty()).then(|| text.into())
}

/// Names of values by slot index, if a description of the graph has them.
fn value_names(side: &ComparedDump, index: usize) -> HashMap<usize, String> {
    let run: &OperatorExecution = &side.runs[index];
    let described = side.description_of(index);
    let operator = described.and_then(|(_, graph, operator)| graph.operators.get(operator));
    let Some(operator) = operator else {
        return HashMap::new();
    };
    let mut names = HashMap::new();
    for (slot_side, values) in [
        (SlotSide::Input, &operator.inputs),
        (SlotSide::Output, &operator.outputs),
    ] {
        let is_present: Vec<bool> = values.iter().map(Option::is_some).collect();
        for (slot, position) in positions(run, slot_side, &is_present) {
            let name = values.get(position).cloned().flatten();
            names.extend(name.map(|name| (slot, name)));
        }
    }
    names
}

fn describe(row: &mut SlotRow, slot: &ExecutionSlot, root: &Path) {
    let record = slot.record();
    row.stream = record.stream_id.map(Into::into);
    row.side = Some(slot.side.name().into());
    row.slot = Some(slot.index.into());
    row.dtype = (!slot.dtype_name.is_empty()).then(|| slot.dtype_name.as_str().into());
    let stored = record.stored_dtype.as_ref().map(ToString::to_string);
    row.stored_dtype = stored
        .filter(|name| *name != slot.dtype_name)
        .map(Into::into);
    row.layout = record
        .layout
        .as_ref()
        .map(|layout| layout.to_string().into());
    if let Some(shape) = &slot.shape {
        let extents = shape
            .iter()
            .map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX));
        row.shape = Some(extents.collect());
        row.n_elements = shape
            .iter()
            .try_fold(1_u64, |n, &extent| n.checked_mul(extent))
            .and_then(|n| i64::try_from(n).ok());
    }
    let placement = record.placement.as_ref();
    row.placement = placement.map(|placement| placement.to_string().into());
    row.n_bytes = record.n_bytes.and_then(|n| i64::try_from(n).ok());
    // A single file has no parent directory in the dump.
    let below = slot.path.strip_prefix(root).unwrap_or(&slot.path);
    row.file = Some(below.to_string_lossy().into());
    if let Some(place) = &record.elements {
        row.file_format = place.kind.map(|kind| kind.name().into());
        let place = slot.place_in_file();
        row.file_slot = place.and_then(|(_, index)| i64::try_from(index).ok());
        row.offset = slot.offset().and_then(|offset| i64::try_from(offset).ok());
    }
    row.statistics = statistics_of(slot);
    // Other digests have as many digits and would be mistaken for this one.
    let mut statistics = slot.statistics.iter();
    let digest = statistics.find(|(title, _)| title.eq_ignore_ascii_case(DIGEST));
    row.digest = digest.and_then(|(_, text)| text.as_deref().map(Into::into));
}

impl PartRows<'_> {
    /// The record for reading a native row's elements; `None` if it has no elements.
    pub(super) fn native_record(&self, row: &SlotRow) -> Option<IndexedTensor> {
        let path = file_below(&self.run_dir, row.file.as_deref()?)?;
        let dtype = row.stored_dtype.as_ref().or(row.dtype.as_ref())?;
        let extents = row.shape.as_ref()?.iter();
        let extents = extents.map(|&extent| u64::try_from(extent).ok());
        Some(IndexedTensor {
            stored_dtype: Some(opscope_store::reader::DumpTerm::Known(dtype.parse().ok()?)),
            shape: Some(extents.collect::<Option<_>>()?),
            n_bytes: row.n_bytes.and_then(|n| u64::try_from(n).ok()),
            elements: Some(ElementsPlace {
                real_name: SharedText::default(),
                kind: Some(FileKind::Elements),
                tensor: Some((SlotSide::Output, 0)),
                offset: row.offset.and_then(|offset| u64::try_from(offset).ok()),
            }),
            path: path.into(),
            ..IndexedTensor::default()
        })
    }
}
