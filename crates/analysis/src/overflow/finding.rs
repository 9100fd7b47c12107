//! Extracts overflows from a record.

use opscope_store::file_format::op_debug::{
    Accelerator, CoreData, OverflowRecord, TaskInfo, causes,
};
use opscope_store::tree::acl::DumpFileName;

use super::is_same_part;
use super::summary::OverflowPart;

/// An overflow in one section of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The section: `DHA Atomic Add`, `L2 Atomic Add`, `AI Core`, `AIC`, `AIV`, `AICPU` or `SDMA`.
    pub unit: &'static str,
    /// The task that overflowed.
    pub task_id: u64,
    /// Its stream.
    pub stream_id: u64,
    /// Its context, in the second layout.
    pub context_id: Option<u64>,
    /// Its thread, in the second layout.
    pub thread_id: Option<u64>,
    /// The status register, or all four; at least one is not zero.
    pub status: Vec<u64>,
    /// A short description of each cause.
    pub causes: Vec<String>,
}

/// The sections of a record whose status is not zero, in the record's order.
pub fn findings(record: &OverflowRecord) -> Vec<Finding> {
    let all = match record {
        OverflowRecord::Blocks(record) => {
            let core = &record.ai_core;
            vec![
                in_block("DHA Atomic Add", &record.dha, record.dha_status),
                in_block("L2 Atomic Add", &record.l2, record.l2_status),
                Finding {
                    causes: named(core.status),
                    ..in_block("AI Core", &core.task, core.status)
                },
            ]
        }
        OverflowRecord::Accelerator(record) => vec![in_accelerator(&record.data)],
    };
    all.into_iter()
        .filter(|finding| finding.status.iter().any(|&status| status != 0))
        .collect()
}

fn in_block(unit: &'static str, task: &TaskInfo, status: u64) -> Finding {
    Finding {
        unit,
        task_id: task.task_id,
        stream_id: task.stream_id,
        context_id: None,
        thread_id: None,
        status: vec![status],
        causes: vec!["atomic addition".to_owned()],
    }
}

fn in_accelerator(data: &Accelerator) -> Finding {
    let unit = data.acc_type().name();
    let (task_id, stream_id, context_id, thread_id, status) = match data {
        Accelerator::Aic(core) | Accelerator::Aiv(core) => return in_core(unit, core),
        Accelerator::AiCpu(d) => (d.task_id, d.stream_id, d.context_id, d.thread_id, d.status),
        Accelerator::Sdma(d) => (d.task_id, d.stream_id, d.context_id, d.thread_id, d.status),
    };
    Finding {
        unit,
        task_id,
        stream_id,
        context_id: Some(context_id),
        thread_id: Some(thread_id),
        status: vec![status],
        // The bits of these two units are undocumented.
        causes: vec![format!("overflow in {unit}")],
    }
}

fn in_core(unit: &'static str, core: &CoreData) -> Finding {
    let more = core.more_status.iter().flatten();
    let mut causes = named(core.status);
    // Only the first register's bits are documented.
    causes.extend(
        more.clone()
            .enumerate()
            .filter(|(_, status)| **status != 0)
            .map(|(i, status)| format!("undocumented status word {} of {status:#x}", i + 1)),
    );
    Finding {
        unit,
        task_id: core.task_id,
        stream_id: core.stream_id,
        context_id: Some(core.context_id),
        thread_id: Some(core.thread_id),
        status: std::iter::once(core.status).chain(more.copied()).collect(),
        causes,
    }
}

fn named(status: u64) -> Vec<String> {
    let causes = causes(status).into_iter();
    causes
        .map(|cause| match cause {
            opscope_store::file_format::op_debug::StatusCause::Unknown(bit) => {
                format!("undocumented bit {bit:#x}")
            }
            known => known.description().to_owned(),
        })
        .collect()
}

impl Finding {
    /// The status as `0x110`, or the list of four.
    pub fn status_text(&self) -> String {
        let words: Vec<String> = self
            .status
            .iter()
            .map(|word| format!("{word:#x}"))
            .collect();
        match &words[..] {
            [one] => one.clone(),
            _ => format!("[{}]", words.join(", ")),
        }
    }

    /// The register with documented bits: of an AI Core; the first of four.
    pub fn core_status(&self) -> Option<u64> {
        let is_core = matches!(self.unit, "AI Core" | "AIC" | "AIV");
        self.status.first().copied().filter(|_| is_core)
    }

    /// Status and causes: `0x110 = integer arithmetic + conversion to float16`.
    pub fn explanation(&self) -> String {
        format!("{} = {}", self.status_text(), self.causes.join(" + "))
    }

    /// Whether a file name belongs to a dump of the task.
    pub(crate) fn is_of(&self, name: &DumpFileName) -> bool {
        let part = name.sub_task;
        u64::from(name.task_id) == self.task_id
            // Older file names have no stream.
            && name.stream_id.is_none_or(|stream| u64::from(stream) == self.stream_id)
            && is_same_part(self.context_id, part.map(|part| part.context_id))
            && is_same_part(self.thread_id, part.map(|part| part.thread_id))
    }

    /// The finding in the form of the summary file.
    pub(crate) fn to_part(&self) -> OverflowPart {
        let words: Vec<String> = self.status.iter().map(u64::to_string).collect();
        OverflowPart {
            unit: self.unit.to_owned(),
            task_id: self.task_id,
            stream_id: self.stream_id,
            status: match &words[..] {
                [one] => one.clone(),
                _ => format!("[{}]", words.join(", ")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use opscope_store::file_format::op_debug::{AcceleratorRecord, BlockRecord};

    use super::*;

    #[test]
    fn every_section_with_a_status_is_found() {
        let mut record = BlockRecord::default();
        assert!(findings(&OverflowRecord::Blocks(record.clone())).is_empty());
        record.l2_status = 1;
        record.ai_core.status = 0x110;
        let found = findings(&OverflowRecord::Blocks(record));
        let units: Vec<_> = found.iter().map(|finding| finding.unit).collect();
        assert_eq!(units, ["L2 Atomic Add", "AI Core"]);
        let registers = found.iter().map(Finding::core_status);
        assert_eq!(registers.collect::<Vec<_>>(), [None, Some(0x110)]);
        assert_eq!(
            found[1].explanation(),
            "0x110 = integer addition, subtraction or multiplication + conversion of float32 or \
             int32 to float16"
        );
    }

    #[test]
    fn four_words_of_zero_are_no_overflow() {
        let record = |status, more_status| {
            let core = CoreData {
                status,
                more_status,
                ..CoreData::default()
            };
            OverflowRecord::Accelerator(AcceleratorRecord {
                version: 1,
                valid: 1,
                reserved: 0,
                data_len: 112,
                data: Accelerator::Aiv(core),
            })
        };
        assert!(findings(&record(0, Some([0; 3]))).is_empty());
        let found = findings(&record(0, Some([0, 6, 0])));
        assert_eq!(found[0].status_text(), "[0x0, 0x0, 0x6, 0x0]");
        assert_eq!(found[0].causes, ["undocumented status word 2 of 0x6"]);
        assert_eq!(found[0].to_part().status, "[0, 0, 6, 0]");
    }

    #[test]
    fn dumps_are_told_by_the_ids_in_the_record() {
        let finding = Finding {
            unit: "AIC",
            task_id: 57,
            stream_id: 9,
            context_id: Some(2),
            thread_id: Some(0),
            status: vec![1],
            causes: Vec::new(),
        };
        for (name, expected) in [
            ("Add.a.57.9.100.4.2.1.0", true),
            ("Add.a.57.9.100.4.3.1.0", false),
            ("Add.a.57.9.100", false),
            ("Add.a.58.9.100.4.2.1.0", false),
        ] {
            let name = DumpFileName::parse(name).unwrap();
            assert_eq!(finding.is_of(&name), expected, "{name}");
        }
        let older = DumpFileName::parse("Add.a.57.100").unwrap();
        let finding = Finding {
            context_id: None,
            ..finding
        };
        assert!(finding.is_of(&older));
    }
}
