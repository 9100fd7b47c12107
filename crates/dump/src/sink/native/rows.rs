//! The rows of a record.

use std::sync::Arc;

use opscope_store::record::{CallSite, Operator, Record, SlotSide};
use opscope_store::slot_table::{SlotRow, StatisticsCells};
use opscope_store::tree::acl::stream_id;
use opscope_store::tree::native::NativeTree;
use opscope_tensor::Tensor;
use opscope_tensor::digest::hex;

use super::NativeContent;
use super::elements::ElementsPlace;

/// One row for each tensor, inputs first. `places` are those of the tensors' elements.
pub(super) fn rows(
    record: &Record,
    tree: &NativeTree,
    content: NativeContent,
    places: &[Option<ElementsPlace>],
) -> Vec<SlotRow> {
    let common = execution_row(record, tree);
    let slots = record.slots().zip(places);
    let rows = slots.map(|((side, index, tensor), place)| {
        // Absent optional slots have no tensor, but count.
        let value = value_name(&record.operator, side, index);
        let placement = record.operator.placement(side, index);
        let mut row = SlotRow {
            side: Some(side.name().into()),
            slot: i64::try_from(index).ok(),
            value: value.map(Into::into),
            placement: placement.map(|placement| placement.to_string().into()),
            ..common.clone()
        };
        describe(&mut row, tensor, content, place.as_ref());
        row
    });
    rows.collect()
}

/// The cells that all tensors of an execution have in common.
fn execution_row(record: &Record, tree: &NativeTree) -> SlotRow {
    let (model, operator) = (&record.model, &record.operator);
    let text = |text: &str| (!text.is_empty()).then(|| Arc::<str>::from(text));
    let CallSite { module, source } = operator.call_site.clone().unwrap_or_default();
    let collective = operator.collective.as_ref();
    SlotRow {
        rank: Some(tree.rank().into()),
        device: Some(model.device.into()),
        model: text(&model.file_stem),
        graph: text(&model.graph_name),
        load: model.load.map(Into::into),
        step: i64::try_from(record.step).ok(),
        kind: Some("operator".into()),
        op_type: text(&operator.op_type),
        op_name: text(&operator.op_name),
        module: Some(module).filter(|text| !text.is_empty()),
        source: Some(source).filter(|text| !text.is_empty()),
        collective: collective.map(|call| call.kind.to_string().into()),
        group_ranks: collective.and_then(|call| text(&call.ranks_text())),
        task: Some(operator.task_id.into()),
        stream: Some(stream_id(model).into()),
        time_us: i64::try_from(record.timestamp_us).ok(),
        ..SlotRow::default()
    }
}

fn value_name(operator: &Operator, side: SlotSide, index: usize) -> Option<&str> {
    let names = match side {
        SlotSide::Input => &operator.inputs,
        SlotSide::Output => &operator.outputs,
    };
    names
        .get(index)
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

fn describe(
    row: &mut SlotRow,
    tensor: &Tensor,
    content: NativeContent,
    place: Option<&ElementsPlace>,
) {
    let dims = tensor.shape().iter();
    row.dtype = Some(tensor.dtype().name().into());
    row.layout = Some(tensor.layout().name().into());
    row.shape = Some(
        dims.map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX))
            .collect(),
    );
    row.n_elements = i64::try_from(tensor.shape().n_elements()).ok();
    row.n_bytes = i64::try_from(tensor.n_bytes()).ok();
    if content.has_statistics()
        && let Ok(stats) = tensor.stats()
    {
        row.statistics = StatisticsCells::from(stats);
    }
    let digest = match place {
        Some(place) => {
            row.file = Some(place.file.clone());
            row.file_format = Some("safetensors".into());
            row.offset = i64::try_from(place.offset).ok();
            Some(place.digest)
        }
        None => tensor.observed().digest().ok(),
    };
    row.digest = digest.map(|digest| hex(&digest).into());
}
