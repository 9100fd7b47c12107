//! Compares the dumps of two devices, operator by operator.

use opscope_store::record::SlotSide;

use super::align::shape_text;
use super::dump::{ComparedFile, FileTensor};
use super::dump_dir::{DumpDir, load_files};
use super::file_name::{TaskMode, op_type};
use super::metrics::{NAN, TensorFacts};
use super::outcome::GroupOutcome;
use super::overflow;
use super::restore::restore;
use super::row::{RowForm, RowOperator, TensorResult};
use super::stop::CompareStop;
use super::values::SideValues;
use crate::failure::ErrorCode;
use crate::log;

/// An operator of either device.
pub(super) struct DeviceOp {
    index: usize,
    key: String,
    mine: Option<NewestFiles>,
    golden: Option<NewestFiles>,
}

/// Its files, the newest last.
struct NewestFiles {
    paths: Vec<std::path::PathBuf>,
    mode: TaskMode,
}

/// The operators of both sides: those of my side by time, then those of the golden side only.
pub(super) fn operators(mine: &DumpDir, golden: &DumpDir) -> Result<Vec<DeviceOp>, CompareStop> {
    let mut ops: Vec<DeviceOp> = Vec::new();
    for (key, mode, paths) in by_time(mine)? {
        ops.push(DeviceOp {
            index: ops.len(),
            key,
            mine: Some(NewestFiles { paths, mode }),
            golden: None,
        });
    }
    let n_mine = ops.len();
    let positions: std::collections::HashMap<String, usize> = ops
        .iter()
        .enumerate()
        .map(|(i, op)| (op.key.clone(), i))
        .collect();
    for (key, mode, paths) in by_time(golden)? {
        let files = Some(NewestFiles { paths, mode });
        match positions.get(&key).filter(|&&i| i < n_mine) {
            Some(&i) => ops[i].golden = files,
            None => ops.push(DeviceOp {
                index: ops.len(),
                key,
                mine: None,
                golden: files,
            }),
        }
    }
    Ok(ops)
}

type Timed = (String, TaskMode, Vec<std::path::PathBuf>);

fn by_time(dir: &DumpDir) -> Result<Vec<Timed>, CompareStop> {
    let mut found = Vec::new();
    for operator in &dir.operators {
        let files = dir.sorted(operator)?;
        let time = dir.newest(&files, operator.mode)?;
        found.push((time, (operator.key.clone(), operator.mode, files)));
    }
    found.sort_by_key(|(time, _)| *time);
    Ok(found.into_iter().map(|(_, operator)| operator).collect())
}

/// Settings for comparing operators of two device dumps.
pub(super) struct DeviceComparison<'a> {
    /// The form of rows. Its address columns are always filled.
    pub(super) form: RowForm<'a>,
}

/// One operator's dump on one side.
struct LoadedDump {
    path: String,
    dump: ComparedFile,
    name: String,
}

impl DeviceComparison<'_> {
    /// Compares an operator. Exceptions that the reference handles only cost its rows.
    pub(super) fn compare(&self, op: &DeviceOp) -> Result<GroupOutcome, CompareStop> {
        match self.try_compare(op) {
            Err(CompareStop::Exception(message)) => {
                log::error(&format!("Failed to compare {}. {message}", op.key));
                Ok(GroupOutcome {
                    status: Some(ErrorCode::Unknown),
                    ..GroupOutcome::default()
                })
            }
            other => other,
        }
    }

    fn try_compare(&self, op: &DeviceOp) -> Result<GroupOutcome, CompareStop> {
        let (Some(mine), Some(golden)) = (&op.mine, &op.golden) else {
            return Ok(self.one_sided(op));
        };
        let mine = match load(&op.key, mine) {
            Ok(loaded) => loaded,
            Err(CompareStop::Coded(code, message)) => {
                // If my dump is unreadable, one row is lost; if the golden one is, the command
                // ends, as in the reference.
                let mut outcome = self.without_results(op, &op.key, &[message], false);
                outcome.status = Some(code);
                return Ok(outcome);
            }
            Err(other) => return Err(other),
        };
        let golden = load(&op.key, golden)?;
        let mut results = Vec::new();
        let mut failures = Vec::new();
        for side in [SlotSide::Input, SlotSide::Output] {
            match check_side(&op.key, &mine.dump, &golden.dump, side) {
                Ok(()) => results.extend(self.compare_side(&op.key, &mine, &golden, side)?),
                Err(message) => failures.push(message),
            }
        }
        let mut reasons = Vec::new();
        if !mine.dump.is_complete {
            let reason = "This is a FFTS+ mode dump data, The number of files does not match the \
                          number of thread";
            reasons.push(reason.to_owned());
        }
        // One matching side is compared, and the failure of the other is not reported.
        if failures.len() == 2 {
            reasons.extend(failures);
            let mut outcome = self.without_results(op, &mine.name, &reasons, false);
            outcome.status = Some(ErrorCode::InvalidDumpData);
            return Ok(outcome);
        }
        let rows = self.form.rows(
            &mine.name,
            &subject(op, &mine.name, &mine.name),
            Some(&results),
            &reasons,
        );
        Ok(GroupOutcome {
            is_matched: true,
            rows: vec![rows],
            ..GroupOutcome::default()
        })
    }

    /// An operator that one device lacks.
    fn one_sided(&self, op: &DeviceOp) -> GroupOutcome {
        let missing = match op.mine {
            Some(_) => "ground truth",
            None => "my output",
        };
        let reason = format!(
            "[{0}] There is no the {missing} dump file for the op \"{0}\".",
            op.key
        );
        log::warning(&reason);
        let (mine, golden) = match op.mine {
            Some(_) => (op.key.as_str(), "*"),
            None => ("*", op.key.as_str()),
        };
        let subject = subject(op, mine, golden);
        let rows = self.form.rows(&op.key, &subject, None, &[reason]);
        GroupOutcome {
            status: Some(ErrorCode::NoDumpFile),
            rows: vec![rows],
            ..GroupOutcome::default()
        }
    }

    fn without_results(
        &self,
        op: &DeviceOp,
        name: &str,
        reasons: &[String],
        finds_overflow: bool,
    ) -> GroupOutcome {
        // The reference omits the overflow cell here.
        let form = RowForm {
            finds_overflow,
            ..self.form
        };
        let rows = form.rows(name, &subject(op, name, name), None, reasons);
        GroupOutcome {
            is_matched: true,
            rows: vec![rows],
            ..GroupOutcome::default()
        }
    }

    fn compare_side(
        &self,
        key: &str,
        mine: &LoadedDump,
        golden: &LoadedDump,
        side: SlotSide,
    ) -> Result<Vec<TensorResult>, CompareStop> {
        let pairs = mine.dump.side(side).iter().zip(golden.dump.side(side));
        let results = pairs.enumerate().map(|(i, (my_tensor, golden_tensor))| {
            // Called only for its error, which precedes those of the comparison.
            crate::formats::from_code(my_tensor.format)?;
            self.compare_tensors(key, (mine, my_tensor), (golden, golden_tensor), side, i)
        });
        results.collect()
    }

    fn compare_tensors(
        &self,
        key: &str,
        (mine, my_tensor): (&LoadedDump, &FileTensor),
        (golden, golden_tensor): (&LoadedDump, &FileTensor),
        side: SlotSide,
        index: usize,
    ) -> Result<TensorResult, CompareStop> {
        // Both sides leave the device's layout first: the two devices may use different ones.
        let my_values = SideValues::decode(&restore(my_tensor)?).into_floats();
        let golden_values = SideValues::decode(&restore(golden_tensor)?).into_floats();
        if my_values.len() != golden_values.len() {
            let message = format!(
                "[{key}_TENSOR] Shape mismatch after restore: ({},) vs ({},)",
                my_values.len(),
                golden_values.len()
            );
            log::warning(&message);
            return Err(CompareStop::bare(ErrorCode::Shape));
        }
        let about = TensorFacts {
            my_file: &mine.path,
            golden_file: &golden.path,
            is_scalar: my_tensor.is_scalar(),
        };
        let results = self.form.algorithms.compare(
            SideValues::Floats(my_values),
            SideValues::Floats(golden_values),
            &about,
            None,
        )?;
        let overflow = self
            .form
            .finds_overflow
            .then(|| overflow::overflow_text(my_tensor));
        Ok(TensorResult {
            id: format!("{}:{}:{index}", mine.name, side.name()),
            op_type: op_type(&mine.path).to_owned(),
            dims: my_tensor.dims.clone(),
            my_dtype: my_tensor.dtype_name().to_owned(),
            golden_dtype: golden_tensor.dtype_name().to_owned(),
            my_address: my_tensor.address.clone(),
            golden_address: golden_tensor.address.clone(),
            overflow: overflow.transpose()?,
            texts: results.texts,
            reasons: results.reasons,
            is_ffts: my_tensor.is_ffts,
        })
    }
}

fn subject<'a>(op: &DeviceOp, mine: &'a str, golden: &'a str) -> RowOperator<'a> {
    RowOperator {
        index: op.index,
        op_type: NAN,
        mine,
        golden,
        sequence: 0,
    }
}

fn load(key: &str, files: &NewestFiles) -> Result<LoadedDump, CompareStop> {
    let (path, dump) = load_files(&files.paths, files.mode)?;
    log::info(&format!("[{key}] {path}"));
    let name = match (&dump.attribute, dump.op_name.as_str()) {
        (Some(_), name) if !name.is_empty() => name.to_owned(),
        _ => key.to_owned(),
    };
    Ok(LoadedDump { path, dump, name })
}

/// Why none of the tensors of a side can be compared.
fn check_side(
    op: &str,
    mine: &ComparedFile,
    golden: &ComparedFile,
    side: SlotSide,
) -> Result<(), String> {
    let (mine, golden) = (mine.side(side), golden.side(side));
    let kind = side.name();
    if mine.len() != golden.len() {
        let (a, b) = (mine.len(), golden.len());
        let message = format!("[{op}] The number of {kind} does not match ({a} vs {b}).");
        log::warning(&message);
        return Err(message);
    }
    if mine.is_empty() {
        let message = format!("[{op}] There is no {kind}. Skip the {op}:{kind}.");
        log::info(&message);
        return Err(message);
    }
    let pairs = mine.iter().zip(golden).enumerate();
    for (i, (mine, golden)) in pairs {
        // One such tensor skips its whole side, as in the reference.
        if mine.dims != golden.dims {
            let (a, b) = (shape_text(&mine.dims), shape_text(&golden.dims));
            let message =
                format!("[{op}] The shape does not match ({a} vs {b}) for {op}:{kind}:{i}.");
            log::error(&message);
            return Err(message);
        }
    }
    Ok(())
}
