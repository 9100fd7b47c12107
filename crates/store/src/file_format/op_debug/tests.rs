use super::*;

fn worked_example() -> BlockRecord {
    // The values of the public overflow document.
    let task = TaskInfo {
        model_id: 514,
        stream_id: 563,
        task_id: 57,
        task_type: 0,
        pc_start: 0x1008_005b_0000,
        para_base: 0x1008_0029_7000,
    };
    BlockRecord {
        ai_core: AiCore {
            task,
            kernel_code: 0x1008_005a_e000,
            block_idx: 1,
            status: 32,
        },
        ..BlockRecord::default()
    }
}

fn core(more_status: Option<[u64; 3]>) -> CoreData {
    CoreData {
        model_id: 1,
        stream_id: 2,
        task_id: 3,
        pc_start: 0xabc,
        status: u64::MAX,
        more_status,
        ..CoreData::default()
    }
}

fn accelerator(version: u32, data: Accelerator) -> OverflowRecord {
    let mut record = AcceleratorRecord {
        version,
        valid: 1,
        reserved: 7,
        data_len: 0,
        data,
    };
    record.data_len = record.expected_data_len();
    OverflowRecord::Accelerator(record)
}

#[test]
fn records_come_back() {
    let cpu = CpuData {
        cpu_id: 5,
        status: 9,
        ..CpuData::default()
    };
    let sdma = SdmaData {
        src_addr: 0x10,
        channel_id: 4,
        ..SdmaData::default()
    };
    for record in [
        OverflowRecord::Blocks(worked_example()),
        accelerator(0, Accelerator::Aic(core(None))),
        accelerator(1, Accelerator::Aiv(core(Some([1, 2, 3])))),
        accelerator(0, Accelerator::AiCpu(cpu)),
        accelerator(1, Accelerator::Sdma(sdma)),
    ] {
        let bytes = record.encode();
        assert_eq!(bytes.len(), BLOCK_RECORD_BYTES);
        assert_eq!(OverflowRecord::decode(&bytes).unwrap(), record);
    }
}

#[test]
fn text_is_indented_by_four_and_has_no_line_end() {
    let text = OverflowRecord::Blocks(worked_example()).to_json_text();
    assert!(text.starts_with("{\n    \"DHA Atomic Add\": {\n        \"model_id\": 0,\n"));
    assert!(text.contains("\"pc_start\": \"0x1008005b0000\""));
    assert!(text.ends_with("\"block_idx\": 1,\n        \"status\": 32\n    }\n}"));
}

#[test]
fn errors_name_their_byte() {
    let good = accelerator(1, Accelerator::Aic(core(Some([0; 3])))).encode();
    let mut unknown = good.clone();
    unknown[12] = 9;
    let old = OverflowRecord::Blocks(worked_example()).encode();
    let cases: [(&[u8], u64); 6] = [
        (b"", 0),
        (&old[..2047], 0),
        (&good[..4], 4),
        (&good[..23], 20),
        (&good[..24 + 100], 24 + 96),
        (&unknown, 12),
    ];
    for (bytes, offset) in cases {
        let error = OverflowRecord::decode(bytes).unwrap_err();
        assert_eq!(error.offset, offset, "{error}");
    }
    for n in 0..good.len() {
        let _ = OverflowRecord::decode(&good[..n]);
    }
}

#[test]
fn status_bits_have_names() {
    // The document's example: 272 is 0x10 and 0x100.
    assert_eq!(causes(272), [StatusCause::Integer, StatusCause::ToF16]);
    assert_eq!(
        causes(0x1),
        [StatusCause::Unknown(1)],
        "a bit that no document names is kept"
    );
    assert!(causes(0).is_empty());
    assert_eq!(causes(0x5b8).len(), 6);
    assert!(
        causes(0x5b8)
            .iter()
            .all(|cause| !matches!(cause, StatusCause::Unknown(_)))
    );
}

#[test]
fn every_letter_case_of_the_prefix_counts() {
    for (name, expected) in [
        ("Opdebug.Node_OpDebug.1.2.3", true),
        ("OpDebug.Node_Opdebug.1.2.3", true),
        ("Opdebug.Node_OpDebug", false),
        ("Add.Opdebug.Node_OpDebug.1", false),
        ("Opdebug.Node_OpDeb\u{fc}g.1", false),
    ] {
        assert_eq!(is_record_name(name), expected, "{name}");
    }
}
