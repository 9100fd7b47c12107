//! Reports of the accelerators of the second layout.

use serde_json::{Value, json};

use super::{AccType, hex, u64_at, u64s_at};
use crate::FormatError;

/// Where the data begin.
const DATA: usize = 24;

/// Report of an accelerator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// A cube core.
    Aic(CoreData),
    /// A vector core.
    Aiv(CoreData),
    /// A CPU on the device.
    AiCpu(CpuData),
    /// The memory copy engine.
    Sdma(SdmaData),
}

/// Data of a cube or vector core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names are the vendor's and all that is known"
)]
pub struct CoreData {
    pub model_id: u64,
    pub stream_id: u64,
    pub task_id: u64,
    pub task_type: u64,
    pub context_id: u64,
    pub thread_id: u64,
    pub pc_start: u64,
    pub para_base: u64,
    pub core_id: u64,
    pub block_id: u64,
    /// The status register; in version 1 of the layout three more follow.
    pub status: u64,
    /// The other status registers.
    pub more_status: Option<[u64; 3]>,
}

/// Data of a CPU on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names are the vendor's and all that is known"
)]
pub struct CpuData {
    pub model_id: u64,
    pub stream_id: u64,
    pub task_id: u64,
    pub task_type: u64,
    pub context_id: u64,
    pub cpu_id: u64,
    pub thread_id: u64,
    pub status: u64,
}

/// Data of the memory copy engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names are the vendor's and all that is known"
)]
pub struct SdmaData {
    pub model_id: u64,
    pub stream_id: u64,
    pub task_id: u64,
    pub task_type: u64,
    pub context_id: u64,
    pub thread_id: u64,
    pub src_addr: u64,
    pub dst_addr: u64,
    pub channel_id: u64,
    pub status: u64,
}

impl Accelerator {
    /// Kind of accelerator.
    pub fn acc_type(&self) -> AccType {
        match self {
            Accelerator::Aic(_) => AccType::Aic,
            Accelerator::Aiv(_) => AccType::Aiv,
            Accelerator::AiCpu(_) => AccType::AiCpu,
            Accelerator::Sdma(_) => AccType::Sdma,
        }
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        match self {
            Accelerator::Aic(d) | Accelerator::Aiv(d) => {
                let mut numbers = vec![
                    d.model_id,
                    d.stream_id,
                    d.task_id,
                    d.task_type,
                    d.context_id,
                    d.thread_id,
                    d.pc_start,
                    d.para_base,
                    d.core_id,
                    d.block_id,
                    d.status,
                ];
                numbers.extend(d.more_status.iter().flatten());
                numbers
            }
            Accelerator::AiCpu(d) => vec![
                d.model_id,
                d.stream_id,
                d.task_id,
                d.task_type,
                d.context_id,
                d.cpu_id,
                d.thread_id,
                d.status,
            ],
            Accelerator::Sdma(d) => vec![
                d.model_id,
                d.stream_id,
                d.task_id,
                d.task_type,
                d.context_id,
                d.thread_id,
                d.src_addr,
                d.dst_addr,
                d.channel_id,
                d.status,
            ],
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Accelerator::Aic(data) | Accelerator::Aiv(data) => data.to_json(),
            Accelerator::AiCpu(d) => json!({
                "model_id": d.model_id,
                "stream_id": d.stream_id,
                "task_id": d.task_id,
                "task_type": d.task_type,
                "context_id": d.context_id,
                "cpu_id": d.cpu_id,
                "thread_id": d.thread_id,
                "status": d.status,
            }),
            Accelerator::Sdma(d) => json!({
                "model_id": d.model_id,
                "stream_id": d.stream_id,
                "task_id": d.task_id,
                "task_type": d.task_type,
                "context_id": d.context_id,
                "thread_id": d.thread_id,
                "src_addr": hex(d.src_addr),
                "dst_addr": hex(d.dst_addr),
                "channel_id": d.channel_id,
                "status": d.status,
            }),
        }
    }
}

impl CoreData {
    pub(super) fn decode(bytes: &[u8], is_wide: bool) -> Result<CoreData, FormatError> {
        let [
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            thread_id,
        ] = u64s_at(bytes, DATA)?;
        let [pc_start, para_base, core_id, block_id] = u64s_at(bytes, DATA + 48)?;
        let status = u64_at(bytes, DATA + 80)?;
        let more_status = if is_wide {
            Some(u64s_at(bytes, DATA + 88)?)
        } else {
            None
        };
        Ok(CoreData {
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            thread_id,
            pc_start,
            para_base,
            core_id,
            block_id,
            status,
            more_status,
        })
    }

    fn to_json(&self) -> Value {
        let status = match self.more_status {
            None => json!(self.status),
            Some([a, b, c]) => json!([self.status, a, b, c]),
        };
        json!({
            "model_id": self.model_id,
            "stream_id": self.stream_id,
            "task_id": self.task_id,
            "task_type": self.task_type,
            "context_id": self.context_id,
            "thread_id": self.thread_id,
            "pc_start": hex(self.pc_start),
            "para_base": hex(self.para_base),
            "core_id": self.core_id,
            "block_id": self.block_id,
            "status": status,
        })
    }
}

impl CpuData {
    pub(super) fn decode(bytes: &[u8]) -> Result<CpuData, FormatError> {
        let [
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            cpu_id,
            thread_id,
            status,
        ] = u64s_at(bytes, DATA)?;
        Ok(CpuData {
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            cpu_id,
            thread_id,
            status,
        })
    }
}

impl SdmaData {
    pub(super) fn decode(bytes: &[u8]) -> Result<SdmaData, FormatError> {
        let [
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            thread_id,
        ] = u64s_at(bytes, DATA)?;
        let [src_addr, dst_addr, channel_id, status] = u64s_at(bytes, DATA + 48)?;
        Ok(SdmaData {
            model_id,
            stream_id,
            task_id,
            task_type,
            context_id,
            thread_id,
            src_addr,
            dst_addr,
            channel_id,
            status,
        })
    }
}
