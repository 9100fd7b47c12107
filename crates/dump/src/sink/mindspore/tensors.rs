//! One tensor: its array file and its row of statistics.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{SinkError, WholeTensors, WrittenFiles};
use opscope_store::file_format::npy::{ArrayRefusal, mindspore_array};
use opscope_store::file_format::statistic_csv::{
    self, StatisticCategory, StatisticCell, StatisticSubject,
};
use opscope_store::record::Operator;
use opscope_store::tree::acl::clean_name;
use opscope_store::tree::mindspore::{
    CONSTANT, DEFAULT_LAYOUT, PARAMETER, STATISTIC_FILE_NAME, TensorFileName, TreeTarget,
};
use opscope_tensor::{DType, Shape, Tensor, TensorObserver};

use super::{MindSporeSink, device_statistics, statistics};
use crate::sink::once::FileSource;

/// The cells of a row, by category.
pub(super) struct StatisticCells(Vec<StatisticCell>);

impl MindSporeSink {
    /// The name of an operator's files without what differs from tensor to tensor.
    pub(super) fn file_name(&self, operator: &Operator) -> TensorFileName {
        let name = match operator.op_type.as_str() {
            PARAMETER | CONSTANT => TensorFileName::of_parameter(&operator.op_name),
            op_type => TensorFileName::of_operator(op_type, &operator.op_name),
        };
        TensorFileName {
            // Kernel by kernel all tasks are 0, and constants belong to none.
            task_id: if self.options.target.has_ranks() || name.is_parameter() {
                0
            } else {
                operator.task_id
            },
            ..name
        }
    }

    /// Writes the tensor, and adds its row to those of the record.
    pub(super) fn write_tensor(
        &self,
        dir: &Path,
        operator: &Operator,
        name: TensorFileName,
        tensor: &Tensor,
        rows: &mut String,
    ) -> Result<WrittenFiles, SinkError> {
        let slot = usize::try_from(name.slot).unwrap_or(usize::MAX);
        let is_whole = self.options.has_tensors
            && (self.tensors).choose_tensor(operator, name.side, slot, tensor);
        let sample = match self.sample(tensor) {
            Ok(sample) => sample,
            Err(reason) => return Ok(self.refuse(reason)),
        };
        // A sample is a separate copy; only its source tensor can show that it was written before.
        // The header distinguishes samples from whole tensors.
        let identity = tensor.identity();
        let tensor = sample.as_ref().unwrap_or(tensor);
        let target = self.options.target;
        let dtype = tensor.dtype();
        let is_refused = dtype == DType::C64 && target != TreeTarget::Cpu;
        let Some(dtype_name) = target.dtype_name(dtype).filter(|_| !is_refused) else {
            return Ok(self.refuse(ArrayRefusal::DType(dtype).to_string()));
        };
        if tensor.shape().n_elements() == 0 {
            return Ok(self.refuse(ArrayRefusal::Empty.to_string()));
        }
        let name = TensorFileName {
            layout: if name.is_parameter() {
                DEFAULT_LAYOUT.to_owned()
            } else {
                self.layout_name(tensor)
            },
            dtype: Some(dtype_name.to_owned()),
            is_compressed: self.options.compression.is_some(),
            ..name
        };
        let mut written = WrittenFiles::default();
        if is_whole {
            let array = match mindspore_array(tensor.host_view()?) {
                Ok(array) => array,
                Err(refusal @ (ArrayRefusal::DType(_) | ArrayRefusal::Empty)) => {
                    return Ok(self.refuse(refusal.to_string()));
                }
                Err(ArrayRefusal::Decode(error)) => {
                    return Err(SinkError::Other(error.to_string()));
                }
            };
            // A name that is taken gets a later time.
            let names = (name.timestamp..).map(|timestamp| {
                let name = name.clone();
                TensorFileName { timestamp, ..name }.to_string()
            });
            let parts: [&[u8]; 2] = [&array.header, &array.payload];
            let source = identity.map(|identity| FileSource {
                identity: identity.clone(),
                dtype,
                header: array.header.as_slice().into(),
            });
            let compression = self.options.compression;
            written = written
                + self
                    .files
                    .put_once(dir, &names, &parts, compression, source)?;
            written.whole = WholeTensors::one(name.side, array.payload.len() as u64);
        }
        if let Some(categories) = &self.options.statistics {
            let subject = self.subject(operator, &name, tensor);
            let cells = self.cells(tensor.observed(), categories);
            rows.push_str(&statistic_csv::row(&subject, &cells.0));
        }
        Ok(written)
    }

    /// Appends the rows of a record with one call.
    pub(super) fn write_rows(&self, dir: &Path, rows: &str) -> Result<WrittenFiles, SinkError> {
        let categories = self.options.statistics.as_deref().unwrap_or_default();
        if rows.is_empty() {
            return Ok(WrittenFiles::default());
        }
        let header = statistic_csv::header(categories);
        let path = dir.join(STATISTIC_FILE_NAME);
        Ok(self.files.append(&path, &header, rows)?)
    }

    /// Returns the subject of a row.
    fn subject(
        &self,
        operator: &Operator,
        name: &TensorFileName,
        tensor: &Tensor,
    ) -> StatisticSubject {
        let n_bytes = tensor.n_bytes() as u64;
        let is_full_name = self.options.target.has_ranks() && !name.is_parameter();
        StatisticSubject {
            op_type: name.op_type.clone(),
            op_name: if is_full_name {
                operator.op_name.clone()
            } else {
                clean_name(&operator.op_name)
            },
            task_id: name.task_id,
            stream_id: name.stream_id,
            timestamp: name.timestamp,
            side: name.side,
            slot: name.slot,
            ..StatisticSubject::of_tensor(tensor.dtype(), tensor.shape(), n_bytes)
        }
    }

    /// The statistics of a tensor, computed once.
    pub(super) fn cells(
        &self,
        tensor: TensorObserver<'_>,
        categories: &[StatisticCategory],
    ) -> Arc<StatisticCells> {
        // Writers add the digests later, so these have separate memos; a row cached as a whole
        // would never get them.
        if self.options.device_statistics.is_none() && statistics::has_digest(categories) {
            return Arc::new(StatisticCells(statistics::cells(tensor, categories)));
        }
        tensor.keep(|tensor| {
            StatisticCells(match self.options.device_statistics {
                None => statistics::cells(tensor, categories),
                Some(precision) => device_statistics::cells(tensor, categories, precision),
            })
        })
    }

    fn layout_name(&self, tensor: &Tensor) -> String {
        let is_host = match self.options.target {
            TreeTarget::Cpu | TreeTarget::Gpu => true,
            TreeTarget::AscendKernels => self.options.has_host_layout,
            TreeTarget::AscendGraph | TreeTarget::GraphEngine => false,
        };
        if is_host {
            DEFAULT_LAYOUT.to_owned()
        } else {
            tensor.layout().name().to_owned()
        }
    }

    /// The first elements, if there are more than are wanted.
    fn sample(&self, tensor: &Tensor) -> Result<Option<Tensor>, String> {
        let n_samples = match (self.options.target, self.options.n_samples) {
            (TreeTarget::AscendKernels, Some(n)) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => return Ok(None),
        };
        if tensor.shape().n_elements() <= n_samples {
            return Ok(None);
        }
        let dtype = tensor.dtype();
        // Two of them share a byte, which cannot be cut.
        if dtype == DType::I4 && n_samples % 2 == 1 {
            let reason = "of int4 only an even number of elements can be sampled";
            return Err(reason.to_owned());
        }
        let sampled = Shape::new([n_samples]).ok().and_then(|shape| {
            let n_bytes = shape.n_bytes(dtype).ok()?;
            let bytes = tensor.host_bytes().ok()?.get(..n_bytes)?.to_vec();
            Tensor::from_vec(dtype, shape, bytes).ok()
        });
        sampled
            .map(Some)
            .ok_or_else(|| format!("elements of {dtype} cannot be sampled"))
    }
}
