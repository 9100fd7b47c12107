//! `-op`: the elements of one tensor, side by side.

mod errors;
mod listing;
mod names;

use std::path::Path;

use opscope_store::record::Side;

use super::super::failure::Code;
use super::super::log;
use super::super::options::CompareOptions;
use super::align::{Aligned, has_depth};
use super::dump::Dump;
use super::file_name::is_number;
use super::fused::Fused;
use super::inputs::Network;
use super::overflow;
use super::stop::Stop;
use listing::Listing;
use names::Names;

const N_LINES: i64 = 1_000_000;
const N_LINES_MIN: i64 = 10_000;
const N_TOP_MAX: i64 = 10_000;
const FRACTAL_Z: &str = "FRACTAL_Z";

/// Which tensor, and how much of it.
pub(super) struct Detail {
    op_name: String,
    side: Side,
    index: usize,
    n_top: i64,
    is_summary_only: bool,
    n_lines_max: usize,
}

impl Detail {
    /// Reads from the options which tensor to list, and how much of it.
    pub(super) fn new(op_name: &str, options: &CompareOptions) -> Result<Detail, Stop> {
        let n_lines = options.n_lines_max.unwrap_or(N_LINES);
        if !(N_LINES_MIN..=N_LINES).contains(&n_lines) {
            let message = format!(
                "The --max_line argument index ({n_lines}) is out of range {N_LINES_MIN} - \
                 {N_LINES}. Please check the index."
            );
            return Err(Stop::coded(Code::InvalidParameter, message));
        }
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (side, index) = match (given(&options.output_index), given(&options.input_index)) {
            (Some(index), _) => (Side::Output, index),
            (None, Some(index)) => (Side::Input, index),
            (None, None) => (Side::Output, "0".to_owned()),
        };
        if !is_number(&index) {
            let message = format!(
                "The detail index '{index}' is invalid. It only supports 'natural number'."
            );
            return Err(Stop::coded(Code::InvalidParameter, message));
        }
        Ok(Detail {
            op_name: op_name.to_owned(),
            side,
            index: index.parse().unwrap_or(usize::MAX),
            n_top: options.n_top,
            is_summary_only: options.ignores_details,
            n_lines_max: n_lines as usize,
        })
    }

    /// Checks the name and the number of elements.
    pub(super) fn check(&self) -> Result<(), Stop> {
        super::super::paths::check_text(Path::new(&self.op_name))?;
        if !(1..=N_TOP_MAX).contains(&self.n_top) {
            let message = format!(
                "The top n index ({}) is out of range [1, {N_TOP_MAX}]. Please check the index.",
                self.n_top
            );
            return Err(Stop::coded(Code::IndexOutOfBounds, message));
        }
        Ok(())
    }

    fn check_index(&self, dump: &Dump) -> Result<(), Stop> {
        let n = dump.side(self.side).len();
        if self.index < n {
            return Ok(());
        }
        let message = format!(
            "[{}] The {} index ({}) is out of range [0, {n}). Please check the index.",
            self.op_name,
            self.side.name(),
            self.index
        );
        Err(Stop::coded(Code::IndexOutOfBounds, message))
    }

    /// `op_output_0`.
    fn prefix(&self) -> String {
        format!("{}{}", self.op_name.replace('/', "_"), self.slot())
    }

    /// `_output_0`.
    fn slot(&self) -> String {
        format!("_{}_{}", self.side.name(), self.index)
    }
}

/// Lists a tensor of two devices.
pub(super) fn of_devices(detail: &Detail, network: &Network, out_dir: &Path) -> Result<(), Stop> {
    let (path, mine) = network.mine.load(&detail.op_name, None)?;
    let (_, golden) = network.golden.load(&detail.op_name, None)?;
    detail.check_index(&mine)?;
    detail.check_index(&golden)?;
    let (mine, golden) = (
        &mine.side(detail.side)[detail.index],
        &golden.side(detail.side)[detail.index],
    );
    if mine.dims != golden.dims {
        let message = format!(
            "My Output data shape {:?} not equal to Ground Truth data shape {:?}.Can not compare.",
            mine.dims, golden.dims
        );
        return Err(Stop::coded(Code::InvalidDumpData, message));
    }
    if mine.format != golden.format {
        let message = "NPUDump tensor format not match Ground truth tensor format!Cannot be \
                       directly compared.";
        return Err(Stop::coded(Code::Format, message));
    }
    let names = Names::new(detail, file_name(&path), out_dir);
    names.delete_old()?;
    let ops = detail.op_name.replace(',', " ");
    let listing = Listing {
        mine: mine.decode()?,
        golden: golden.decode()?,
        dims: mine.dims.clone(),
        axes: axes(mine.format, None, &mine.dims),
        my_ops: ops.clone(),
        golden_ops: ops,
        is_flat: false,
        file_name: file_name(&path).to_owned(),
    };
    listing.write(detail, &names, out_dir)
}

/// Lists a tensor and the golden one that fusion rules name.
pub(super) fn of_rule(
    detail: &Detail,
    fused: &Fused<'_>,
    out_dir: &Path,
) -> Result<Option<Code>, Stop> {
    let rule = fused.rule;
    let (group, op) = rule.find(&detail.op_name)?;
    if fused.form.finds_overflow {
        show_overflow(detail, fused)?;
    }
    let unsupported = |message: String| Err(Stop::coded(Code::Unsupported, message));
    if rule.is_inner(op) {
        return unsupported(format!(
            "[{0}] The op \"{0}\" is inner node for multi to multi relation. Skip the op \"{0}\".",
            detail.op_name
        ));
    }
    if rule.ops[op].is_filtered {
        return unsupported(format!(
            "[{}] The -op param should not specify an operator in quant/dequant pair.",
            detail.op_name
        ));
    }
    let (path, dump) = fused.network.mine.load(&detail.op_name, None)?;
    detail.check_index(&dump)?;
    let names = Names::new(detail, file_name(&path), out_dir);
    names.delete_old()?;
    let (origin, _) = fused.find_golden(op, detail.side, detail.index)?;
    let found = fused.load_golden(op, origin)?;
    let tensor = &dump.side(detail.side)[detail.index];
    let axes = axes(tensor.format, Some(&found.origin.format), &tensor.dims);
    let mut golden = found.golden()?;
    let alignment = fused.alignment(op, true);
    let Aligned { mine, golden, dims } = alignment.align(tensor, &mut golden)?;
    let (my_ops, golden_ops) = rule.joined_names(group);
    let golden_ops = if golden_ops.is_empty() {
        "*".to_owned()
    } else {
        golden_ops.replace(',', " ")
    };
    let listing = Listing {
        mine,
        golden,
        dims,
        axes,
        my_ops: my_ops.replace(',', " "),
        golden_ops,
        is_flat: true,
        file_name: file_name(&path).to_owned(),
    };
    listing.write(detail, &names, out_dir).map(|()| None)
}

/// Says which tensors of the operator overflowed.
fn show_overflow(detail: &Detail, fused: &Fused<'_>) -> Result<(), Stop> {
    let (_, dump) = fused.network.mine.load(&detail.op_name, None)?;
    for side in [Side::Input, Side::Output] {
        for (i, tensor) in dump.side(side).iter().enumerate() {
            let label = format!("{} {}:{i}", detail.op_name, side.name());
            match overflow::of(tensor)? {
                "YES" => log::info(&format!("{label} has overflowed.")),
                "NO" => log::info(&format!("{label} is not overflow.")),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Names of the axes with blanks between them.
fn axes(format: u32, golden: Option<&str>, dims: &[usize]) -> String {
    let name = super::super::formats::from_code(format).map_or("", |(_, name)| name);
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
