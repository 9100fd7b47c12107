//! Compares operators of a device with the original operators in the fusion rules.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::align::{AlignedPair, AlignmentContext, GoldenTensor};
use super::dump::{ComparedFile, FileTensor, is_scalar};
use super::dump_dir::DEQUANT_MARKS;
use super::file_name::DumpFileKind;
use super::inputs::NetworkInputs;
use super::metrics::{NAN, TensorFacts};
use super::outcome::ProducedOutput;
use super::overflow;
use super::row::{RowForm, TensorResult};
use super::rule::{DeviceOperator, ModelRules, OriginTensor};
use super::stop::CompareStop;
use super::values::SideValues;
use crate::failure::ErrorCode;
use crate::{formats, log};

const QUANT_TYPE: &str = "AscendQuant";
const DEQUANT_TYPE: &str = "AscendDequant";

/// The network and settings for comparing the operators of a group.
pub(super) struct FusedComparison<'a> {
    pub(super) network: &'a NetworkInputs,
    pub(super) rule: &'a ModelRules,
    pub(super) form: RowForm<'a>,
}

/// The golden tensor of a device tensor, and its location.
pub(super) struct GoldenMatch {
    pub(super) origin: OriginTensor,
    pub(super) path: String,
    pub(super) dump: ComparedFile,
    /// Index of the dump's output.
    pub(super) index: usize,
}

impl FusedComparison<'_> {
    /// The golden tensor for a tensor of an operator.
    pub(super) fn find_golden(
        &self,
        op: usize,
        side: SlotSide,
        index: usize,
    ) -> Result<(OriginTensor, ProducedOutput), CompareStop> {
        let (producer, output) = self.rule.compared(op, index, side == SlotSide::Input)?;
        let origin = self.rule.origin(producer, output)?;
        let op = &self.rule.ops[op].name;
        log::info(&format!(
            "[{op}] Left({op}:{}:{index}) <======> Right({}:output:{})",
            side.name(),
            origin.name,
            origin.index
        ));
        let name = self.rule.ops[producer].name.clone();
        Ok((origin, ProducedOutput { name, output }))
    }

    /// Loads a golden tensor.
    pub(super) fn load_golden(
        &self,
        op: usize,
        mut origin: OriginTensor,
    ) -> Result<GoldenMatch, CompareStop> {
        let golden = &self.network.golden;
        // A file of an original holds a single output, whose number is part of its name.
        if golden.kind != DumpFileKind::Offline {
            let (path, dump) = golden.load(&origin.name, Some(origin.index))?;
            if dump.outputs.is_empty() {
                return Err(CompareStop::index());
            }
            return Ok(GoldenMatch {
                origin,
                path,
                dump,
                index: 0,
            });
        }
        let (path, dump) = golden.load(&origin.name, None)?;
        let n = dump.outputs.len() as i64;
        // Only the upper end is checked; a negative index counts from the end, as in Python.
        if origin.index >= n {
            log::error(&format!(
                "[{}] The output index ({}) is out of range [0, {n}). Please check the index.",
                self.rule.ops[op].name, origin.index
            ));
            return Err(CompareStop::bare(ErrorCode::IndexOutOfBounds));
        }
        // A negative index counts from the end.
        let index = if origin.index < 0 {
            origin.index + n
        } else {
            origin.index
        };
        let index = usize::try_from(index).map_err(|_| CompareStop::index())?;
        let tensor = dump.outputs.get(index).ok_or_else(CompareStop::index)?;
        origin.format = formats::from_code(tensor.format)?.1.to_owned();
        origin.shape = tensor.dims.iter().map(|&d| d as i64).collect();
        Ok(GoldenMatch {
            origin,
            path,
            dump,
            index,
        })
    }

    /// Compares the tensors of an operator, and records the producers of its inputs.
    pub(super) fn compare_operator(
        &self,
        op: usize,
        producers: &mut HashMap<String, ProducedOutput>,
    ) -> Result<Vec<TensorResult>, CompareStop> {
        let rule = &self.rule.ops[op];
        log::info(&format!("[{0}] Start to compare op \"{0}\".", rule.name));
        let (path, dump) = match self.network.mine.load(&rule.name, None) {
            Ok(found) => found,
            Err(CompareStop::Coded(code, _)) => {
                let message = format!(
                    "[{0}] There is no dump file for my output operator \"{0}\". The type is {1}.",
                    rule.name, rule.op_type
                );
                log::warning(&message);
                return Err(CompareStop::coded(code, message));
            }
            Err(other) => return Err(other),
        };
        let mut results = Vec::new();
        for side in compared_sides(rule) {
            for (index, tensor) in dump.side(side).iter().enumerate() {
                let slot = TensorSlot { op, side, index };
                results.push(self.compare_tensor(slot, tensor, &path, producers)?);
            }
        }
        Ok(results)
    }

    fn compare_tensor(
        &self,
        slot: TensorSlot,
        tensor: &FileTensor,
        path: &str,
        producers: &mut HashMap<String, ProducedOutput>,
    ) -> Result<TensorResult, CompareStop> {
        let op = &self.rule.ops[slot.op];
        let id = format!("{}:{}:{}", op.name, slot.side.name(), slot.index);
        let overflow = self
            .form
            .finds_overflow
            .then(|| overflow::overflow_text(tensor));
        let mut result = TensorResult {
            id,
            op_type: op.op_type.clone(),
            dims: tensor.dims.clone(),
            my_dtype: NAN.to_owned(),
            golden_dtype: NAN.to_owned(),
            my_address: tensor.address.clone(),
            golden_address: NAN.to_owned(),
            overflow: None,
            texts: self.form.algorithms.none(),
            reasons: Vec::new(),
            is_ffts: tensor.is_ffts,
        };
        match self.measure(slot, tensor, path, producers, &mut result) {
            Ok(()) => {}
            Err(CompareStop::Coded(code, message)) => {
                let reason = match code {
                    ErrorCode::NoDumpFile => format!(
                        "[{}] There is no the ground truth dump file for {}.",
                        op.name, result.id
                    ),
                    ErrorCode::FractalNz => format!("[{}] {message}", op.name),
                    _ => message,
                };
                log::warning(&reason);
                result.reasons.push(reason);
            }
            Err(other) => return Err(other),
        }
        // An error of the comparison takes precedence over one of the overflow check.
        result.overflow = overflow.transpose()?;
        Ok(result)
    }

    fn measure(
        &self,
        slot: TensorSlot,
        tensor: &FileTensor,
        path: &str,
        producers: &mut HashMap<String, ProducedOutput>,
        result: &mut TensorResult,
    ) -> Result<(), CompareStop> {
        let (origin, producer) = self.find_golden(slot.op, slot.side, slot.index)?;
        if slot.side == SlotSide::Input {
            producers.insert(result.id.clone(), producer);
        }
        let mut found = self.load_golden(slot.op, origin)?;
        if !tensor.original.is_empty() {
            found.origin.shape = tensor.original.iter().map(|&d| d as i64).collect();
        }
        let alignment = self.alignment(slot.op, false);
        let mut golden = found.golden()?;
        let aligned = alignment.align(tensor, &mut golden)?;
        let AlignedPair { mine, golden, dims } = aligned;
        let about = TensorFacts {
            my_file: path,
            golden_file: &found.path,
            is_scalar: is_scalar(&dims),
        };
        let dtypes = (mine.dtype(), golden.dtype());
        let results = self.form.algorithms.compare(
            SideValues::decode(&mine),
            SideValues::decode(&golden),
            &about,
            self.network.n_elements_max,
        )?;
        result.my_dtype = dtypes.0.name().to_owned();
        result.golden_dtype = dtypes.1.name().to_owned();
        result.dims = dims;
        result.texts = results.texts;
        result.reasons = results.reasons;
        Ok(())
    }

    /// The alignment settings for tensors of an operator.
    pub(super) fn alignment(&self, op: usize, is_listing: bool) -> AlignmentContext<'_> {
        let (mine, golden) = (self.network.mine.kind, self.network.golden.kind);
        AlignmentContext {
            op_name: &self.rule.ops[op].name,
            custom: self.network.custom.as_ref(),
            is_between_originals: (mine, golden) == (DumpFileKind::Quant, DumpFileKind::Standard),
            is_listing,
        }
    }
}

impl GoldenMatch {
    /// The tensor with the information of the rules.
    pub(super) fn golden(&self) -> Result<GoldenTensor<'_>, CompareStop> {
        Ok(GoldenTensor {
            tensor: self
                .dump
                .outputs
                .get(self.index)
                .ok_or_else(CompareStop::index)?,
            format: self.origin.format.clone(),
            shape: self.origin.shape.clone(),
        })
    }
}

/// A tensor of an operator.
#[derive(Clone, Copy)]
struct TensorSlot {
    op: usize,
    side: SlotSide,
    index: usize,
}

/// Inputs of dequantising operators and outputs of quantising ones have no counterpart.
pub(super) fn compared_sides(op: &DeviceOperator) -> impl Iterator<Item = SlotSide> + use<> {
    let restores = op.op_type == DEQUANT_TYPE || DEQUANT_MARKS.iter().any(|m| op.name.ends_with(m));
    let quantises = op.op_type == QUANT_TYPE;
    let sides = [(SlotSide::Input, !restores), (SlotSide::Output, !quantises)];
    sides
        .into_iter()
        .filter_map(|(side, is_compared)| is_compared.then_some(side))
}
