//! The second layout: a header and the data of one accelerator.

use serde_json::{Value, json};

use super::words::WordForm;
use super::{Accelerator, MAGIC, u32_at};
use crate::FormatError;

/// Offset of the accelerator's number; an error at this offset means that the number is unknown.
pub const ACC_TYPE_OFFSET: usize = 12;
/// The version in which cores report four status words.
const VERSION_WIDE_STATUS: u32 = 1;
const VALID: u32 = 1;

/// A record of the second layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceleratorRecord {
    /// Version of the layout.
    pub version: u32,
    /// 1 if the record is filled.
    pub valid: u32,
    /// Reserved.
    pub reserved: u32,
    /// How many bytes of data the device claims to have written.
    pub data_len: u32,
    /// The data.
    pub data: Accelerator,
}

/// Kind of accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccType {
    /// A cube core.
    Aic,
    /// A vector core.
    Aiv,
    /// A CPU on the device.
    AiCpu,
    /// The memory copy engine.
    Sdma,
}

impl AccType {
    pub(super) const ALL: [AccType; 4] =
        [AccType::Aic, AccType::Aiv, AccType::AiCpu, AccType::Sdma];

    /// The vendor's name.
    pub fn name(self) -> &'static str {
        match self {
            AccType::Aic => "AIC",
            AccType::Aiv => "AIV",
            AccType::AiCpu => "AICPU",
            AccType::Sdma => "SDMA",
        }
    }
}

impl AcceleratorRecord {
    pub(super) fn decode(bytes: &[u8]) -> Result<AcceleratorRecord, FormatError> {
        let version = u32_at(bytes, 4)?;
        let valid = u32_at(bytes, 8)?;
        let code = u32_at(bytes, ACC_TYPE_OFFSET)?;
        // Without a known type the data cannot be read. Other numbers that are out of range are an
        // oddity at most, also to the vendor's tool.
        let Some(acc_type) = AccType::ALL.get(code as usize) else {
            let expected = "an accelerator type from 0 to 3";
            return Err(FormatError::new(
                ACC_TYPE_OFFSET as u64,
                expected,
                code.to_string(),
            ));
        };
        let reserved = u32_at(bytes, 16)?;
        let data_len = u32_at(bytes, 20)?;
        let is_wide = version == VERSION_WIDE_STATUS;
        let data = Accelerator::decode(*acc_type, bytes, is_wide)?;
        Ok(AcceleratorRecord {
            version,
            valid,
            reserved,
            data_len,
            data,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let code = self.data.acc_type() as u32;
        let head = [
            MAGIC,
            self.version,
            self.valid,
            code,
            self.reserved,
            self.data_len,
        ];
        let head = head.iter().flat_map(|number| number.to_le_bytes());
        let data = self.data.all_words().into_iter().flat_map(u64::to_le_bytes);
        head.chain(data).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "magic": WordForm::Address.show(MAGIC.into()),
            "version": self.version,
            "acc_list": {
                "valid": self.valid,
                "acc_type": self.data.acc_type().name(),
                "rsv": self.reserved,
                "data_len": self.data_len,
                "data": self.data.to_json(),
            },
        })
    }

    /// Whether the record is marked as filled.
    pub fn is_valid(&self) -> bool {
        self.valid == VALID
    }

    /// How many bytes of data this accelerator and version have.
    pub fn expected_data_len(&self) -> u32 {
        match &self.data {
            Accelerator::AiCpu(_) => 64,
            Accelerator::Sdma(_) => 80,
            Accelerator::Aic(_) | Accelerator::Aiv(_) => {
                if self.version == VERSION_WIDE_STATUS {
                    112
                } else {
                    88
                }
            }
        }
    }
}
