//! Records in JSON: as MindSpore writes them, and as converters print them.

use serde_json::Value;

use super::members::JsonMembers;
use super::{
    AccType, Accelerator, AcceleratorRecord, AiCore, BlockRecord, OverflowRecord, TaskInfo,
};
use crate::FormatError;

/// How the names of such files end.
pub const JSON_SUFFIX: &str = ".json";
/// Maximum size of a file.
pub const JSON_BYTES_MAX: usize = 1 << 20;

/// Reads a record. Members outside its layout are ignored.
///
/// # Errors
/// [`FormatError`] if it is not JSON, or a member is missing or not a number.
pub fn from_json(bytes: &[u8]) -> Result<OverflowRecord, FormatError> {
    if bytes.len() > JSON_BYTES_MAX {
        let expected = format!("at most {JSON_BYTES_MAX} bytes");
        return Err(FormatError::new(0, expected, bytes.len().to_string()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let found = error.to_string();
        FormatError::new(0, "an overflow record in JSON", found)
    })?;
    let root = JsonMembers::root(&value);
    // MindSpore's JSON has no magic, so a member that only one layout has must do.
    match value.get("acc_list") {
        Some(_) => accelerator(&root).map(OverflowRecord::Accelerator),
        None => blocks(&root).map(OverflowRecord::Blocks),
    }
}

fn blocks(root: &JsonMembers<'_>) -> Result<BlockRecord, FormatError> {
    let dha = root.object("DHA Atomic Add")?;
    let l2 = root.object("L2 Atomic Add")?;
    let core = root.object("AI Core")?;
    Ok(BlockRecord {
        dha: TaskInfo::from_members(&dha)?,
        dha_status: dha.number("status")?,
        l2: TaskInfo::from_members(&l2)?,
        l2_status: l2.number("status")?,
        ai_core: AiCore {
            task: TaskInfo::from_members(&core)?,
            kernel_code: core.number("kernel_code")?,
            block_idx: core.number("block_idx")?,
            status: core.number("status")?,
        },
    })
}

fn accelerator(root: &JsonMembers<'_>) -> Result<AcceleratorRecord, FormatError> {
    let list = root.object("acc_list")?;
    let name = list.member("acc_type")?;
    let acc_type = AccType::ALL
        .into_iter()
        .find(|acc_type| name.as_str() == Some(acc_type.name()))
        .ok_or_else(|| list.wrong("acc_type", "`AIC`, `AIV`, `AICPU` or `SDMA`", name))?;
    let data = list.object("data")?;
    Ok(AcceleratorRecord {
        version: root.number32("version")?,
        valid: list.number32("valid")?,
        reserved: list.number32("rsv")?,
        data_len: list.number32("data_len")?,
        data: Accelerator::from_json(acc_type, &data)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::ms_json;
    use crate::file_format::op_debug::{CoreData, CpuData, SdmaData};

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
        // serde_json has its own limit for nesting.
        assert!(from_json("[".repeat(1 << 19).as_bytes()).is_err());
    }
}
