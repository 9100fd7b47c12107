//! Records in JSON: as MindSpore writes them, and as converters print them.

use serde_json::Value;

use super::{
    AccType, Accelerator, AcceleratorRecord, AiCore, BlockRecord, CoreData, CpuData,
    OverflowRecord, SdmaData, TaskInfo,
};
use crate::FormatError;

/// How the names of such files end.
pub const JSON_SUFFIX: &str = ".json";
/// Largest file that is read.
pub const JSON_BYTES_MAX: usize = 1 << 20;

/// Reads a record. Members that it has beyond those of its layout are passed over.
///
/// # Errors
/// [`FormatError`] if it is no JSON, or lacks a member, or one of them is no number.
pub fn from_json(bytes: &[u8]) -> Result<OverflowRecord, FormatError> {
    if bytes.len() > JSON_BYTES_MAX {
        let expected = format!("at most {JSON_BYTES_MAX} bytes");
        return Err(FormatError::new(0, expected, bytes.len().to_string()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let found = error.to_string();
        FormatError::new(0, "an overflow record in JSON", found)
    })?;
    let root = Members {
        value: &value,
        place: String::new(),
    };
    match value.get("acc_list") {
        Some(_) => root.accelerator().map(OverflowRecord::Accelerator),
        None => root.blocks().map(OverflowRecord::Blocks),
    }
}

/// An object in the text, and where it is.
struct Members<'a> {
    value: &'a Value,
    place: String,
}

/// A structure whose fields are the members of the same names. Fields behind `;` are variables.
macro_rules! numbers {
    ($members:expr => $name:ident { $($field:ident),+ $(; $($known:ident),+)? }) => {
        $name {
            $($field: $members.number(stringify!($field))?,)+
            $($($known,)+)?
        }
    };
}

impl<'a> Members<'a> {
    fn blocks(&self) -> Result<BlockRecord, FormatError> {
        let dha = self.object("DHA Atomic Add")?;
        let l2 = self.object("L2 Atomic Add")?;
        let core = self.object("AI Core")?;
        Ok(BlockRecord {
            dha: dha.task()?,
            dha_status: dha.number("status")?,
            l2: l2.task()?,
            l2_status: l2.number("status")?,
            ai_core: AiCore {
                task: core.task()?,
                kernel_code: core.number("kernel_code")?,
                block_idx: core.number("block_idx")?,
                status: core.number("status")?,
            },
        })
    }

    fn task(&self) -> Result<TaskInfo, FormatError> {
        Ok(numbers!(
            self => TaskInfo { model_id, stream_id, task_id, task_type, pc_start, para_base }
        ))
    }

    fn accelerator(&self) -> Result<AcceleratorRecord, FormatError> {
        let list = self.object("acc_list")?;
        let name = list.member("acc_type")?;
        let acc_type = AccType::ALL
            .into_iter()
            .find(|acc_type| name.as_str() == Some(acc_type.name()))
            .ok_or_else(|| list.wrong("acc_type", "`AIC`, `AIV`, `AICPU` or `SDMA`", name))?;
        let data = list.object("data")?;
        Ok(AcceleratorRecord {
            version: self.number32("version")?,
            valid: list.number32("valid")?,
            reserved: list.number32("rsv")?,
            data_len: list.number32("data_len")?,
            data: match acc_type {
                AccType::Aic => Accelerator::Aic(data.core()?),
                AccType::Aiv => Accelerator::Aiv(data.core()?),
                AccType::AiCpu => Accelerator::AiCpu(data.cpu()?),
                AccType::Sdma => Accelerator::Sdma(data.sdma()?),
            },
        })
    }

    fn core(&self) -> Result<CoreData, FormatError> {
        let (status, more_status) = match self.member("status")? {
            Value::Array(words) => {
                let words: Option<Vec<u64>> = words.iter().map(number).collect();
                let Some(&[status, a, b, c]) = words.as_deref() else {
                    let found = self.member("status")?;
                    return Err(self.wrong("status", "four numbers", found));
                };
                (status, Some([a, b, c]))
            }
            _ => (self.number("status")?, None),
        };
        Ok(numbers!(
            self => CoreData {
                model_id, stream_id, task_id, task_type, context_id, thread_id, pc_start, para_base,
                core_id, block_id; status, more_status
            }
        ))
    }

    fn cpu(&self) -> Result<CpuData, FormatError> {
        Ok(numbers!(
            self => CpuData {
                model_id, stream_id, task_id, task_type, context_id, cpu_id, thread_id, status
            }
        ))
    }

    fn sdma(&self) -> Result<SdmaData, FormatError> {
        Ok(numbers!(
            self => SdmaData {
                model_id, stream_id, task_id, task_type, context_id, thread_id, src_addr, dst_addr,
                channel_id, status
            }
        ))
    }

    fn object(&self, name: &str) -> Result<Members<'a>, FormatError> {
        let value = self.member(name)?;
        match value.is_object() {
            true => Ok(Members {
                value,
                place: format!("{}/{name}", self.place),
            }),
            false => Err(self.wrong(name, "an object", value)),
        }
    }

    fn member(&self, name: &str) -> Result<&'a Value, FormatError> {
        self.value.get(name).ok_or_else(|| {
            let expected = format!("a member `{}/{name}`", self.place);
            FormatError::new(0, expected, "none")
        })
    }

    /// A number, or the text of one in hexadecimal.
    fn number(&self, name: &str) -> Result<u64, FormatError> {
        let value = self.member(name)?;
        number(value).ok_or_else(|| self.wrong(name, "a number", value))
    }

    fn number32(&self, name: &str) -> Result<u32, FormatError> {
        let number = self.number(name)?;
        u32::try_from(number).map_err(|_| {
            let found = Value::from(number);
            self.wrong(name, "a number of 32 bits", &found)
        })
    }

    fn wrong(&self, name: &str, expected: &str, found: &Value) -> FormatError {
        let expected = format!("{expected} as `{}/{name}`", self.place);
        let found: String = found.to_string().chars().take(40).collect();
        FormatError::new(0, expected, format!("`{found}`"))
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        other => other.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::ms_json;

    fn task(n: u64) -> TaskInfo {
        TaskInfo {
            model_id: n,
            stream_id: n + 1,
            task_id: n + 2,
            task_type: n + 3,
            pc_start: u64::MAX - n,
            para_base: n + 5,
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        let block = BlockRecord {
            dha: task(1),
            dha_status: 2,
            l2: task(20),
            l2_status: 3,
            ai_core: AiCore {
                task: task(40),
                kernel_code: 0x1008_005a_e000,
                block_idx: 1,
                status: 0x110,
            },
        };
        let of_mindspore = ms_json::overflow(&block);
        let block = OverflowRecord::Blocks(block);
        assert_eq!(from_json(of_mindspore.as_bytes()).unwrap(), block);
        let core = |more_status| CoreData {
            task_id: 57,
            pc_start: 0xffff,
            status: 32,
            more_status,
            ..CoreData::default()
        };
        let accelerator = |version, data| {
            OverflowRecord::Accelerator(AcceleratorRecord {
                version,
                valid: 1,
                reserved: 0,
                data_len: 88,
                data,
            })
        };
        for record in [
            block,
            accelerator(0, Accelerator::Aic(core(None))),
            accelerator(1, Accelerator::Aiv(core(Some([0, 7, 0])))),
            accelerator(0, Accelerator::AiCpu(CpuData::default())),
            accelerator(0, Accelerator::Sdma(SdmaData::default())),
        ] {
            assert_eq!(from_json(record.to_json_text().as_bytes()).unwrap(), record);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, part) in [
            ("", "expected an overflow record in JSON"),
            ("[]", "a member `/DHA Atomic Add`"),
            (r#"{"DHA Atomic Add": 1}"#, "an object as `/DHA Atomic Add`"),
            (
                r#"{"DHA Atomic Add": {"model_id": -1}, "L2 Atomic Add": {}, "AI Core": {}}"#,
                "a number as `/DHA Atomic Add/model_id`",
            ),
            (
                r#"{"acc_list": {"acc_type": "X"}}"#,
                "`AIC`, `AIV`, `AICPU` or `SDMA`",
            ),
        ] {
            let error = from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(from_json(&vec![b' '; JSON_BYTES_MAX + 1]).is_err());
        // serde_json has a limit of its own for nesting.
        assert!(from_json("[".repeat(1 << 19).as_bytes()).is_err());
    }
}
