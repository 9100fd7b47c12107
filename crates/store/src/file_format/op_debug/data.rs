//! Reports of the accelerators of the second layout.

use serde_json::{Value, json};

use super::members::JsonMembers;
use super::words::words;
use super::{AccType, u64s_at};
use crate::FormatError;

/// Where the data begin.
const DATA: usize = 24;
/// Where the further status registers of a core lie.
const MORE_STATUS: usize = DATA + 88;

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

words! {
    /// Data of a cube or vector core.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[expect(
        missing_docs,
        reason = "the names are the vendor's and all that is known"
    )]
    pub struct CoreData {
        model_id: Number,
        stream_id: Number,
        task_id: Number,
        task_type: Number,
        context_id: Number,
        thread_id: Number,
        pc_start: Address,
        para_base: Address,
        core_id: Number,
        block_id: Number,
        /// The status register; in version 1 of the layout three more follow.
        status: Number,
        ;
        /// The other status registers.
        more_status: Option<[u64; 3]>,
    }
}

words! {
    /// Data of a CPU on the device.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[expect(
        missing_docs,
        reason = "the names are the vendor's and all that is known"
    )]
    pub struct CpuData {
        model_id: Number,
        stream_id: Number,
        task_id: Number,
        task_type: Number,
        context_id: Number,
        cpu_id: Number,
        thread_id: Number,
        status: Number,
    }
}

words! {
    /// Data of the memory copy engine.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[expect(
        missing_docs,
        reason = "the names are the vendor's and all that is known"
    )]
    pub struct SdmaData {
        model_id: Number,
        stream_id: Number,
        task_id: Number,
        task_type: Number,
        context_id: Number,
        thread_id: Number,
        src_addr: Address,
        dst_addr: Address,
        channel_id: Number,
        status: Number,
    }
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

    /// Reads the data of an accelerator; with `is_wide` a core has four status words.
    pub(super) fn decode(
        acc_type: AccType,
        bytes: &[u8],
        is_wide: bool,
    ) -> Result<Accelerator, FormatError> {
        Ok(match acc_type {
            AccType::Aic => Accelerator::Aic(CoreData::decode_core(bytes, is_wide)?),
            AccType::Aiv => Accelerator::Aiv(CoreData::decode_core(bytes, is_wide)?),
            AccType::AiCpu => Accelerator::AiCpu(CpuData::decode(bytes, DATA)?),
            AccType::Sdma => Accelerator::Sdma(SdmaData::decode(bytes, DATA)?),
        })
    }

    pub(super) fn from_json(
        acc_type: AccType,
        data: &JsonMembers<'_>,
    ) -> Result<Accelerator, FormatError> {
        Ok(match acc_type {
            AccType::Aic => Accelerator::Aic(CoreData::core_from_json(data)?),
            AccType::Aiv => Accelerator::Aiv(CoreData::core_from_json(data)?),
            AccType::AiCpu => Accelerator::AiCpu(CpuData::from_members(data)?),
            AccType::Sdma => Accelerator::Sdma(SdmaData::from_members(data)?),
        })
    }

    pub(super) fn all_words(&self) -> Vec<u64> {
        match self {
            Accelerator::Aic(core) | Accelerator::Aiv(core) => {
                let mut words = core.words();
                words.extend(core.more_status.iter().flatten());
                words
            }
            Accelerator::AiCpu(data) => data.words(),
            Accelerator::Sdma(data) => data.words(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Accelerator::Aic(core) | Accelerator::Aiv(core) => core.core_to_json(),
            Accelerator::AiCpu(data) => data.json(),
            Accelerator::Sdma(data) => data.json(),
        }
    }
}

impl CoreData {
    fn decode_core(bytes: &[u8], is_wide: bool) -> Result<CoreData, FormatError> {
        let mut core = CoreData::decode(bytes, DATA)?;
        if is_wide {
            core.more_status = Some(u64s_at(bytes, MORE_STATUS)?);
        }
        Ok(core)
    }

    /// The registers become one list under the first one's name, as the vendor's converter has
    /// them.
    fn core_to_json(&self) -> Value {
        let mut core = self.json();
        if let Some([a, b, c]) = self.more_status {
            core["status"] = json!([self.status, a, b, c]);
        }
        core
    }

    fn core_from_json(data: &JsonMembers<'_>) -> Result<CoreData, FormatError> {
        // In JSON the form of the member, not the version, shows whether there are more registers.
        let Some(registers) = data.list("status")? else {
            return CoreData::from_members(data);
        };
        let Some(&[status, a, b, c]) = registers.as_deref() else {
            let found = data.member("status")?;
            return Err(data.wrong("status", "four numbers", found));
        };
        // The rest is read as from a record with one register.
        let narrow = data.with("status", json!(status));
        let mut core = CoreData::from_members(&data.replaced_by(&narrow))?;
        core.more_status = Some([a, b, c]);
        Ok(core)
    }
}
