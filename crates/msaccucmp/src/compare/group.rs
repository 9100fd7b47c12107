//! Compares the operators that correspond to the same originals.

use std::collections::HashMap;

use super::file_name::TaskMode;
use super::fused::FusedComparison;
use super::outcome::{GroupOutcome, ProducedOutput};
use super::row::{OperatorRows, RowOperator, TensorResult};
use super::rule::OriginRelation;
use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;

/// The comparison of one group.
struct GroupComparison<'a> {
    fused: &'a FusedComparison<'a>,
    ops: &'a [usize],
    producers: HashMap<String, ProducedOutput>,
}

impl FusedComparison<'_> {
    /// Compares the operators of a group.
    pub(super) fn compare(&self, ops: &[usize]) -> Result<GroupOutcome, CompareStop> {
        let mut group = GroupComparison {
            fused: self,
            ops,
            producers: HashMap::new(),
        };
        let mut outcome = match self.rule.relation(ops) {
            OriginRelation::ToOne => group.compare_alone()?,
            OriginRelation::ToMany => group.compare_many(ops, Vec::new())?,
            OriginRelation::L1 => group.compare_l1()?,
        };
        outcome.producers = group.producers;
        Ok(outcome)
    }
}

impl GroupComparison<'_> {
    /// A group of one operator.
    fn compare_alone(&mut self) -> Result<GroupOutcome, CompareStop> {
        let mut outcome = GroupOutcome::default();
        for &op in self.ops {
            let rule = &self.fused.rule.ops[op];
            if self.skips(op) {
                continue;
            }
            let mut reasons = Vec::new();
            let results = match self.fused.compare_operator(op, &mut self.producers) {
                Ok(results) => results,
                Err(CompareStop::Coded(code, message)) => {
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

    /// Several operators, each against its original.
    fn compare_many(
        &mut self,
        ops: &[usize],
        mut reasons: Vec<String>,
    ) -> Result<GroupOutcome, CompareStop> {
        let names = self.fused.rule.joined_names(self.ops);
        let is_l1 = self.fused.rule.relation(self.ops) == OriginRelation::L1;
        let mut outcome = GroupOutcome::default();
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
                Err(CompareStop::Coded(code, message)) => {
                    outcome.status = Some(code);
                    reasons.push(message);
                    // A missing dump costs no row unless the whole group has none.
                    if code == ErrorCode::NoDumpFile {
                        continue;
                    }
                    None
                }
                Err(other) => return Err(other),
            };
            has_result = true;
            outcome.is_matched = true;
            // Reasons only matter if no operator of the group has a row.
            reasons.clear();
            outcome
                .rows
                .push(self.rows(op, &names, results.as_deref(), &reasons));
        }
        if !has_result {
            let first = self.ops.first().copied().ok_or_else(CompareStop::index)?;
            outcome.rows.push(self.rows(first, &names, None, &reasons));
        }
        Ok(outcome)
    }

    /// Operators with a shared buffer: the oldest dump has all inputs, the newest all outputs.
    fn compare_l1(&mut self) -> Result<GroupOutcome, CompareStop> {
        let mine = &self.fused.network.mine;
        let mut dumped = Vec::new();
        for &op in self.ops {
            let (files, mode): (_, TaskMode) = match mine.files(&self.fused.rule.ops[op].name, None)
            {
                Ok(found) => found,
                Err(CompareStop::Coded(..)) => continue,
                Err(other) => return Err(other),
            };
            dumped.push((mine.newest(&files, mode)?, op));
        }
        dumped.sort_by_key(|(time, _)| *time);
        let (Some(&(_, oldest)), Some(&(_, newest))) = (dumped.first(), dumped.last()) else {
            let names = self.fused.rule.joined_names(self.ops);
            let first = self.ops.first().copied().ok_or_else(CompareStop::index)?;
            let reasons = ["The fusion operator list is empty".to_owned()];
            return Ok(GroupOutcome {
                status: Some(ErrorCode::NoDumpFile),
                rows: vec![self.rows(first, &names, None, &reasons)],
                ..GroupOutcome::default()
            });
        };
        let rules = &self.fused.rule.ops;
        let ops = if rules[oldest].originals.join(",") == rules[newest].originals.join(",") {
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
    ) -> OperatorRows {
        let op = &self.fused.rule.ops[op];
        let subject = RowOperator {
            index: op.index,
            op_type: &op.op_type,
            mine: &names.0,
            golden: &names.1,
            sequence: op.sequence,
        };
        self.fused.form.rows(&op.name, &subject, results, reasons)
    }
}
