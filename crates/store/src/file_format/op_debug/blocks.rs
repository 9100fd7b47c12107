//! The first layout: three blocks in 2048 bytes.

use serde_json::{Value, json};

use super::members::JsonMembers;
use super::words::{WordForm, words};
use super::{BLOCK_RECORD_BYTES, u64_at, u64s_at};
use crate::FormatError;

// Each area is longer than what is known of it; the rest is zero.
const DHA_INFO: usize = 0;
const L2_INFO: usize = 128;
const AI_CORE_INFO: usize = 256;
const DHA_STATUS: usize = 512;
const L2_STATUS: usize = 768;
const AI_CORE_STATUS: usize = 1024;

/// A record of the first layout. A block whose status is 0 saw no overflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockRecord {
    /// Atomic addition by direct memory access.
    pub dha: TaskInfo,
    /// Status of that block.
    pub dha_status: u64,
    /// Atomic addition in the L2 cache.
    pub l2: TaskInfo,
    /// Status of that block.
    pub l2_status: u64,
    /// Arithmetic in the AI Core.
    pub ai_core: AiCore,
}

words! {
    /// Which task overflowed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct TaskInfo {
        /// The model.
        model_id: Number,
        /// The stream.
        stream_id: Number,
        /// The task.
        task_id: Number,
        /// Kind of task.
        task_type: Number,
        /// Address of the operator's code.
        pc_start: Address,
        /// Address of the operator's arguments.
        para_base: Address,
    }
}

/// The AI Core block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AiCore {
    /// The task.
    pub task: TaskInfo,
    /// Address of the kernel. According to the documentation it equals `pc_start`, but records
    /// differ.
    pub kernel_code: u64,
    /// Which block of the kernel.
    pub block_idx: u64,
    /// The status register; [`causes`](super::causes) names its bits.
    pub status: u64,
}

impl BlockRecord {
    pub(super) fn decode(bytes: &[u8]) -> Result<BlockRecord, FormatError> {
        // This layout has no magic, so only the size identifies a record.
        if bytes.len() != BLOCK_RECORD_BYTES {
            let expected = format!("{BLOCK_RECORD_BYTES} bytes of an overflow record");
            return Err(FormatError::new(0, expected, bytes.len().to_string()));
        }
        let [kernel_code, block_idx, status] = u64s_at(bytes, AI_CORE_STATUS)?;
        Ok(BlockRecord {
            dha: TaskInfo::decode(bytes, DHA_INFO)?,
            dha_status: u64_at(bytes, DHA_STATUS)?,
            l2: TaskInfo::decode(bytes, L2_INFO)?,
            l2_status: u64_at(bytes, L2_STATUS)?,
            ai_core: AiCore {
                task: TaskInfo::decode(bytes, AI_CORE_INFO)?,
                kernel_code,
                block_idx,
                status,
            },
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_RECORD_BYTES];
        let core = &self.ai_core;
        let pieces: [(usize, &[u64]); 6] = [
            (DHA_INFO, &self.dha.words()),
            (L2_INFO, &self.l2.words()),
            (AI_CORE_INFO, &core.task.words()),
            (DHA_STATUS, &[self.dha_status]),
            (L2_STATUS, &[self.l2_status]),
            (
                AI_CORE_STATUS,
                &[core.kernel_code, core.block_idx, core.status],
            ),
        ];
        for (at, numbers) in pieces {
            for (i, number) in numbers.iter().enumerate() {
                let at = at + 8 * i;
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn to_json(&self) -> Value {
        // JSON objects keep the order of insertion, and this is the order of the vendor's
        // converter.
        let mut core = self.ai_core.task.json();
        core["kernel_code"] = WordForm::Address.show(self.ai_core.kernel_code);
        core["block_idx"] = json!(self.ai_core.block_idx);
        core["status"] = json!(self.ai_core.status);
        json!({
            "DHA Atomic Add": self.dha.with_status(self.dha_status),
            "L2 Atomic Add": self.l2.with_status(self.l2_status),
            "AI Core": core,
        })
    }
}

impl TaskInfo {
    fn with_status(&self, status: u64) -> Value {
        let mut block = self.json();
        block["status"] = json!(status);
        block
    }
}
