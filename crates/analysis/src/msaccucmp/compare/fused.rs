//! Comparing operators of a device with the operators of a model that fusion rules name.

use std::collections::HashMap;

use opscope_store::record::Side;

use super::super::failure::Code;
use super::super::{formats, log};
use super::NAN;
use super::align::{Aligned, Alignment, Golden, is_scalar_shape};
use super::dump::{Dump, Tensor};
use super::dump_dir::DEQUANT_MARKS;
use super::file_name::{Kind, TaskMode};
use super::metrics::About;
use super::network::Network;
use super::outcome::{Outcome, Producer};
use super::overflow;
use super::row::{Form, Rows, Subject, TensorResult};
use super::rule::{Op, Origin, Relation, Rule};
use super::stop::Stop;
use super::values::Values;

const QUANT_TYPE: &str = "AscendQuant";
const DEQUANT_TYPE: &str = "AscendDequant";

/// What the operators of a group are compared with.
pub(super) struct Fused<'a> {
    pub(super) network: &'a Network,
    pub(super) rule: &'a Rule,
    pub(super) form: Form<'a>,
}

/// The golden tensor of one of the device, and where it is.
pub(super) struct Found {
    pub(super) origin: Origin,
    pub(super) path: String,
    pub(super) dump: Dump,
    /// Which of the dump's outputs.
    pub(super) index: usize,
}

/// The comparison of one group.
struct Group<'a> {
    fused: &'a Fused<'a>,
    ops: &'a [usize],
    producers: HashMap<String, Producer>,
}

impl Fused<'_> {
    /// Compares the operators of a group.
    pub(super) fn compare(&self, ops: &[usize]) -> Result<Outcome, Stop> {
        let mut group = Group {
            fused: self,
            ops,
            producers: HashMap::new(),
        };
        let mut outcome = match self.rule.relation(ops) {
            Relation::ToOne => group.compare_alone()?,
            Relation::ToMany => group.compare_many(ops, Vec::new())?,
            Relation::L1 => group.compare_l1()?,
        };
        outcome.producers = group.producers;
        Ok(outcome)
    }

    /// The golden tensor for a tensor of an operator.
    pub(super) fn find_golden(
        &self,
        op: usize,
        side: Side,
        index: usize,
    ) -> Result<(Origin, Producer), Stop> {
        let (producer, output) = self.rule.compared(op, index, side == Side::Input)?;
        let origin = self.rule.origin(producer, output)?;
        let op = &self.rule.ops[op].name;
        log::info(&format!(
            "[{op}] Left({op}:{}:{index}) <======> Right({}:output:{})",
            side.name(),
            origin.name,
            origin.index
        ));
        let name = self.rule.ops[producer].name.clone();
        Ok((origin, Producer { name, output }))
    }

    /// Loads a golden tensor.
    pub(super) fn load_golden(&self, op: usize, mut origin: Origin) -> Result<Found, Stop> {
        let golden = &self.network.golden;
        if golden.kind != Kind::Offline {
            let (path, dump) = golden.load(&origin.name, Some(origin.index))?;
            if dump.outputs.is_empty() {
                return Err(Stop::index());
            }
            return Ok(Found {
                origin,
                path,
                dump,
                index: 0,
            });
        }
        let (path, dump) = golden.load(&origin.name, None)?;
        let n = dump.outputs.len() as i64;
        if origin.index >= n {
            log::error(&format!(
                "[{}] The output index ({}) is out of range [0, {n}). Please check the index.",
                self.rule.ops[op].name, origin.index
            ));
            return Err(Stop::bare(Code::IndexOutOfBounds));
        }
        // Counted from the end if negative.
        let index = if origin.index < 0 {
            origin.index + n
        } else {
            origin.index
        };
        let index = usize::try_from(index).map_err(|_| Stop::index())?;
        let tensor = dump.outputs.get(index).ok_or_else(Stop::index)?;
        origin.format = formats::from_code(tensor.format)?.1.to_owned();
        origin.shape = tensor.dims.iter().map(|&d| d as i64).collect();
        Ok(Found {
            origin,
            path,
            dump,
            index,
        })
    }

    fn compare_operator(
        &self,
        op: usize,
        producers: &mut HashMap<String, Producer>,
    ) -> Result<Vec<TensorResult>, Stop> {
        let rule = &self.rule.ops[op];
        log::info(&format!("[{0}] Start to compare op \"{0}\".", rule.name));
        let (path, dump) = match self.network.mine.load(&rule.name, None) {
            Ok(found) => found,
            Err(Stop::Coded(code, _)) => {
                let message = format!(
                    "[{0}] There is no dump file for my output operator \"{0}\". The type is {1}.",
                    rule.name, rule.op_type
                );
                log::warning(&message);
                return Err(Stop::coded(code, message));
            }
            Err(other) => return Err(other),
        };
        let mut results = Vec::new();
        for side in compared_sides(rule) {
            for (index, tensor) in dump.side(side).iter().enumerate() {
                let slot = Slot { op, side, index };
                results.push(self.compare_tensor(slot, tensor, &path, producers)?);
            }
        }
        Ok(results)
    }

    fn compare_tensor(
        &self,
        slot: Slot,
        tensor: &Tensor,
        path: &str,
        producers: &mut HashMap<String, Producer>,
    ) -> Result<TensorResult, Stop> {
        let op = &self.rule.ops[slot.op];
        let id = format!("{}:{}:{}", op.name, slot.side.name(), slot.index);
        let overflow = self.form.finds_overflow.then(|| overflow::of(tensor));
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
            Err(Stop::Coded(code, message)) => {
                let reason = match code {
                    Code::NoDumpFile => format!(
                        "[{}] There is no the ground truth dump file for {}.",
                        op.name, result.id
                    ),
                    Code::FractalNz => format!("[{}] {message}", op.name),
                    _ => message,
                };
                log::warning(&reason);
                result.reasons.push(reason);
            }
            Err(other) => return Err(other),
        }
        result.overflow = overflow.transpose()?;
        Ok(result)
    }

    fn measure(
        &self,
        slot: Slot,
        tensor: &Tensor,
        path: &str,
        producers: &mut HashMap<String, Producer>,
        result: &mut TensorResult,
    ) -> Result<(), Stop> {
        let (origin, producer) = self.find_golden(slot.op, slot.side, slot.index)?;
        if slot.side == Side::Input {
            producers.insert(result.id.clone(), producer);
        }
        let mut found = self.load_golden(slot.op, origin)?;
        if !tensor.original.is_empty() {
            found.origin.shape = tensor.original.iter().map(|&d| d as i64).collect();
        }
        let alignment = self.alignment(slot.op, false);
        let mut golden = found.golden()?;
        let aligned = alignment.align(tensor, &mut golden)?;
        let Aligned { mine, golden, dims } = aligned;
        let about = About {
            my_file: path,
            golden_file: &found.path,
            is_scalar: is_scalar_shape(&dims),
        };
        let dtypes = (mine.dtype(), golden.dtype());
        let results = self.form.algorithms.compare(
            Values::of(&mine),
            Values::of(&golden),
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

    /// How tensors of an operator are aligned.
    pub(super) fn alignment(&self, op: usize, is_listing: bool) -> Alignment<'_> {
        let (mine, golden) = (self.network.mine.kind, self.network.golden.kind);
        Alignment {
            op_name: &self.rule.ops[op].name,
            custom: self.network.custom.as_ref(),
            is_between_originals: (mine, golden) == (Kind::Quant, Kind::Standard),
            is_listing,
        }
    }
}

impl Found {
    /// The tensor with what is said of it.
    pub(super) fn golden(&self) -> Result<Golden<'_>, Stop> {
        Ok(Golden {
            tensor: self.dump.outputs.get(self.index).ok_or_else(Stop::index)?,
            format: self.origin.format.clone(),
            shape: self.origin.shape.clone(),
        })
    }
}

/// A tensor of an operator.
#[derive(Clone, Copy)]
struct Slot {
    op: usize,
    side: Side,
    index: usize,
}

/// Inputs of operators that undo quantising have nothing to be compared with, nor have outputs of
/// those that quantise.
pub(super) fn compared_sides(op: &Op) -> impl Iterator<Item = Side> + use<> {
    let restores = op.op_type == DEQUANT_TYPE || DEQUANT_MARKS.iter().any(|m| op.name.ends_with(m));
    let quantises = op.op_type == QUANT_TYPE;
    let sides = [(Side::Input, !restores), (Side::Output, !quantises)];
    sides
        .into_iter()
        .filter_map(|(side, is_compared)| is_compared.then_some(side))
}

impl Group<'_> {
    /// A group of one operator.
    fn compare_alone(&mut self) -> Result<Outcome, Stop> {
        let mut outcome = Outcome::default();
        for &op in self.ops {
            let rule = &self.fused.rule.ops[op];
            if self.skips(op) {
                continue;
            }
            let mut reasons = Vec::new();
            let results = match self.fused.compare_operator(op, &mut self.producers) {
                Ok(results) => results,
                Err(Stop::Coded(code, message)) => {
                    outcome.status = Some(code);
                    reasons.push(message);
                    Vec::new()
                }
                Err(other) => return Err(other),
            };
            outcome.is_matched |= !results.is_empty();
            let originals = match rule.originals.join(",") {
                names if names.is_empty() => "*".to_owned(),
                names => names,
            };
            let names = (rule.name.clone(), originals);
            outcome
                .rows
                .push(self.rows(op, &names, Some(&results), &reasons));
        }
        Ok(outcome)
    }

    /// Several operators, each against what it stands for.
    fn compare_many(&mut self, ops: &[usize], mut reasons: Vec<String>) -> Result<Outcome, Stop> {
        let names = self.fused.rule.joined_names(self.ops);
        let is_l1 = self.fused.rule.relation(self.ops) == Relation::L1;
        let mut outcome = Outcome::default();
        let mut has_result = false;
        for &op in ops {
            if self.skips(op) {
                continue;
            }
            if !is_l1 && self.fused.rule.is_inner(op) {
                let name = &self.fused.rule.ops[op].name;
                let message = format!(
                    "[{name}] The op is inner node for multi to multi relation.Skip the op."
                );
                log::warning(&message);
                reasons.push(message);
                continue;
            }
            let results = match self.fused.compare_operator(op, &mut self.producers) {
                Ok(results) => Some(results),
                Err(Stop::Coded(code, message)) => {
                    outcome.status = Some(code);
                    reasons.push(message);
                    if code == Code::NoDumpFile {
                        continue;
                    }
                    None
                }
                Err(other) => return Err(other),
            };
            has_result = true;
            outcome.is_matched = true;
            reasons.clear();
            outcome
                .rows
                .push(self.rows(op, &names, results.as_deref(), &reasons));
        }
        if !has_result {
            let first = self.ops.first().copied().ok_or_else(Stop::index)?;
            outcome.rows.push(self.rows(first, &names, None, &reasons));
        }
        Ok(outcome)
    }

    /// Operators that share a buffer: the oldest dump has all inputs, the newest all outputs.
    fn compare_l1(&mut self) -> Result<Outcome, Stop> {
        let mine = &self.fused.network.mine;
        let mut dumped = Vec::new();
        for &op in self.ops {
            let (files, mode): (_, TaskMode) = match mine.files(&self.fused.rule.ops[op].name, None)
            {
                Ok(found) => found,
                Err(Stop::Coded(..)) => continue,
                Err(other) => return Err(other),
            };
            dumped.push((mine.newest(&files, mode)?, op));
        }
        dumped.sort_by_key(|(time, _)| *time);
        let (Some(&(_, oldest)), Some(&(_, newest))) = (dumped.first(), dumped.last()) else {
            let names = self.fused.rule.joined_names(self.ops);
            let first = self.ops.first().copied().ok_or_else(Stop::index)?;
            let reasons = ["The fusion operator list is empty".to_owned()];
            return Ok(Outcome {
                status: Some(Code::NoDumpFile),
                rows: vec![self.rows(first, &names, None, &reasons)],
                ..Outcome::default()
            });
        };
        let originals = |op: usize| self.fused.rule.ops[op].originals.join(",");
        let ops = if originals(oldest) == originals(newest) {
            vec![newest]
        } else {
            vec![oldest, newest]
        };
        self.compare_many(&ops, Vec::new())
    }

    fn skips(&self, op: usize) -> bool {
        let op = &self.fused.rule.ops[op];
        if op.is_filtered {
            log::info(&format!(
                "[{}] This op is in a quant/dequant op pair. Skip the op.",
                op.name
            ));
        }
        op.is_filtered
    }

    fn rows(
        &self,
        op: usize,
        names: &(String, String),
        results: Option<&[TensorResult]>,
        reasons: &[String],
    ) -> Rows {
        let op = &self.fused.rule.ops[op];
        let subject = Subject {
            index: op.index,
            op_type: &op.op_type,
            mine: &names.0,
            golden: &names.1,
            sequence: op.sequence,
        };
        self.fused.form.rows(&op.name, &subject, results, reasons)
    }
}
