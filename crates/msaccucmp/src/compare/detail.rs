//! `-op`: the elements of one tensor, side by side.

mod errors;
mod listing;
mod names;
mod tensor_choice;

use std::path::Path;

use listing::DetailListing;
use names::DetailNames;
use opscope_store::record::SlotSide;

use super::align::{AlignedPair, has_depth};
use super::fused::FusedComparison;
use super::inputs::NetworkInputs;
use super::overflow;
use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;

pub(super) use tensor_choice::TensorChoice;

const FRACTAL_Z: &str = "FRACTAL_Z";

/// Lists a tensor of two devices.
pub(super) fn of_devices(
    choice: &TensorChoice,
    network: &NetworkInputs,
    out_dir: &Path,
) -> Result<(), CompareStop> {
    let (path, mine) = network.mine.load(&choice.op_name, None)?;
    let (_, golden) = network.golden.load(&choice.op_name, None)?;
    choice.check_index(&mine)?;
    choice.check_index(&golden)?;
    let (mine, golden) = (
        &mine.side(choice.side)[choice.index],
        &golden.side(choice.side)[choice.index],
    );
    if mine.dims != golden.dims {
        let message = format!(
            "My Output data shape {:?} not equal to Ground Truth data shape {:?}.Can not compare.",
            mine.dims, golden.dims
        );
        return Err(CompareStop::coded(ErrorCode::InvalidDumpData, message));
    }
    if mine.format != golden.format {
        let message = "NPUDump tensor format not match Ground truth tensor format!Cannot be \
                       directly compared.";
        return Err(CompareStop::coded(ErrorCode::Format, message));
    }
    let names = DetailNames::new(choice, file_name(&path), out_dir);
    names.delete_old()?;
    let ops = choice.op_name.replace(',', " ");
    let listing = DetailListing {
        mine: mine.decode()?,
        golden: golden.decode()?,
        dims: mine.dims.clone(),
        axes: axes(mine.format, None, &mine.dims),
        my_ops: ops.clone(),
        golden_ops: ops,
        is_flat: false,
    };
    listing.write(choice, &names, out_dir)
}

/// Lists a tensor and the golden tensor from the fusion rules.
pub(super) fn of_rule(
    choice: &TensorChoice,
    fused: &FusedComparison<'_>,
    out_dir: &Path,
) -> Result<Option<ErrorCode>, CompareStop> {
    let rule = fused.rule;
    let (group, op) = rule.find(&choice.op_name)?;
    if fused.form.finds_overflow {
        show_overflow(choice, fused)?;
    }
    if rule.is_inner(op) {
        return unsupported(format!(
            "[{0}] The op \"{0}\" is inner node for multi to multi relation. Skip the op \"{0}\".",
            choice.op_name
        ));
    }
    if rule.ops[op].is_filtered {
        return unsupported(format!(
            "[{}] The -op param should not specify an operator in quant/dequant pair.",
            choice.op_name
        ));
    }
    let (path, dump) = fused.network.mine.load(&choice.op_name, None)?;
    choice.check_index(&dump)?;
    let names = DetailNames::new(choice, file_name(&path), out_dir);
    names.delete_old()?;
    let (origin, _) = fused.find_golden(op, choice.side, choice.index)?;
    let found = fused.load_golden(op, origin)?;
    let tensor = &dump.side(choice.side)[choice.index];
    let axes = axes(tensor.format, Some(&found.origin.format), &tensor.dims);
    let mut golden = found.golden()?;
    let alignment = fused.alignment(op, true);
    let AlignedPair { mine, golden, dims } = alignment.align(tensor, &mut golden)?;
    let (my_ops, golden_ops) = rule.joined_names(group);
    let golden_ops = if golden_ops.is_empty() {
        "*".to_owned()
    } else {
        golden_ops.replace(',', " ")
    };
    let listing = DetailListing {
        mine,
        golden,
        dims,
        axes,
        my_ops: my_ops.replace(',', " "),
        golden_ops,
        is_flat: true,
    };
    listing.write(choice, &names, out_dir).map(|()| None)
}

/// Refuses an operator that cannot be listed.
fn unsupported<T>(message: String) -> Result<T, CompareStop> {
    Err(CompareStop::coded(ErrorCode::Unsupported, message))
}

/// Reports which tensors of the operator overflowed.
fn show_overflow(choice: &TensorChoice, fused: &FusedComparison<'_>) -> Result<(), CompareStop> {
    let (_, dump) = fused.network.mine.load(&choice.op_name, None)?;
    for side in [SlotSide::Input, SlotSide::Output] {
        for (i, tensor) in dump.side(side).iter().enumerate() {
            let label = format!("{} {}:{i}", choice.op_name, side.name());
            match overflow::overflow_text(tensor)? {
                "YES" => log::info(&format!("{label} has overflowed.")),
                "NO" => log::info(&format!("{label} is not overflow.")),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Blank-separated names of the axes.
fn axes(format: u32, golden: Option<&str>, dims: &[usize]) -> String {
    let name = crate::formats::from_code(format).map_or("", |(_, name)| name);
    match golden {
        _ if has_depth(format) => "N C D H W".to_owned(),
        Some(golden) if name == FRACTAL_Z => {
            let letters: Vec<String> = golden.chars().map(String::from).collect();
            letters.join(" ")
        }
        _ if dims.is_empty() => "ID".to_owned(),
        _ => "N C H W".to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
