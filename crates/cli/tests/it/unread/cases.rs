//! Files that are put into a tree, and how each command takes them.

use std::fs;
use std::path::Path;

use opscope_store::file_format::op_debug::{BlockRecord, OverflowRecord};
use opscope_store::file_format::{dump_data, ms_json, npy};
use opscope_tensor::{DType, Shape};

const STATISTICS: &str = "Input/Output,Index,Data Size,Data Type,Format,Shape,Count,l2norm\nOutput,0,8,DT_FLOAT,ND,2,2,1.5\n";
const STEP_TABLE: &str = "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Index,Data Size,Data Type,Format,Shape,\
                          Max Value,Min Value,Avg Value,l2norm,Count,Nan Count,Negative Inf Count,Positive Inf Count\n\
                          T,n,3,0,17,Output,0,12,DT_FLOAT,ND,3,3,0,0.6,3.1,3,0,0,0\n";
const STATISTIC: &str = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n\
                         Add,Default/a-op0,0,0,5,output,0,8,float32,\"[2]\",1,\n";
pub(crate) const ACL: &str = "20240102030405/0/net/1/0";
pub(crate) const MINDSPORE: &str = "rank_0/Net/0/0";

fn golden(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read(root.join("../analysis/tests/golden/cann/dumps").join(name)).unwrap()
}

pub(crate) fn array() -> Vec<u8> {
    let header = npy::encode_header(DType::F32, &Shape::new([2]).unwrap()).unwrap();
    [&header[..], &1_f32.to_le_bytes(), &2_f32.to_le_bytes()].concat()
}

/// A record of an overflow, or of none.
pub(crate) fn record(status: u64) -> BlockRecord {
    let mut record = BlockRecord::default();
    record.ai_core.status = status;
    record.ai_core.task.task_id = 5;
    record
}

fn binary_record() -> Vec<u8> {
    dump_data::op_debug_file(&OverflowRecord::Blocks(record(0)), 17)
}

/// A file, or something else, that is put into a tree.
pub(crate) enum Content {
    Bytes(Vec<u8>),
    LinkTo(&'static str),
    Pipe,
    Socket,
    Directory,
}

/// How a command takes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Read,
    Passed(&'static str),
    Unread,
    /// It was inspected, and there is nothing of interest in it.
    NoRecord,
}

pub(crate) struct Case {
    /// The name, or the real one of a file that goes by `stored`.
    pub(crate) name: &'static str,
    /// The name by which a mapped file goes.
    pub(crate) stored: Option<&'static str>,
    pub(crate) content: Content,
    pub(crate) show: Fate,
    pub(crate) convert: Fate,
    pub(crate) overflow: Fate,
}

fn case(name: &'static str, content: Content, fates: [Fate; 3]) -> Case {
    let [show, convert, overflow] = fates;
    Case {
        name,
        stored: None,
        content,
        show,
        convert,
        overflow,
    }
}

fn mapped(stored: &'static str, of: Case) -> Case {
    Case {
        stored: Some(stored),
        ..of
    }
}

use Fate::{NoRecord, Passed, Read, Unread};

const TENSOR: &str = "Conv2D.network_conv1_relu.5.1.1700000000000100";
const STATS: Fate = Passed("statistics");
const CONVERTED: Fate = Passed("converted");

fn bytes(content: &[u8]) -> Content {
    Content::Bytes(content.to_vec())
}

fn tensor(name: &'static str) -> Case {
    case(name, bytes(&golden(TENSOR)), [Read, Read, NoRecord])
}

fn table(name: &'static str) -> Case {
    case(name, bytes(STATISTICS.as_bytes()), [Read, STATS, NoRecord])
}

fn binary(name: &'static str) -> Case {
    case(name, bytes(&binary_record()), [Read, Read, Read])
}

fn json(name: &'static str) -> Case {
    let text = ms_json::overflow(&record(0));
    case(name, bytes(text.as_bytes()), [Read, CONVERTED, Read])
}

fn result(name: &'static str) -> Case {
    case(name, bytes(&array()), [Read, CONVERTED, NoRecord])
}

fn mindspore_array(name: &'static str) -> Case {
    case(name, bytes(&array()), [Read, Read, NoRecord])
}

/// Of a dump file whose name says that it is no record.
fn damaged(name: &'static str, content: &[u8]) -> Case {
    case(name, bytes(content), [Unread, Unread, NoRecord])
}

fn unread(name: &'static str, content: Content) -> Case {
    case(name, content, [Unread, Unread, Unread])
}

fn passed(name: &'static str, reason: &'static str) -> Case {
    case(name, bytes(b"x"), [Passed(reason); 3])
}

/// Every kind of file, under its own name and by digits with a real name.
pub(crate) fn of_acl() -> Vec<Case> {
    let mut cases = vec![
        tensor("Conv2D.a.5.1.17"),
        mapped("1001", tensor("Conv2D.long.5.1.17")),
        // Nothing says what it is called.
        tensor("1002"),
        table("Conv2D.a.6.1.17.csv"),
        mapped("1003", table("Conv2D.long.6.1.17.csv")),
        mapped("1004.csv", table("Conv2D.other.6.1.17.csv")),
        case(
            "1005",
            bytes(STATISTICS.as_bytes()),
            [Read, Unread, NoRecord],
        ),
        case(
            "statistics.csv",
            bytes(STEP_TABLE.as_bytes()),
            [Read, STATS, NoRecord],
        ),
        binary("Opdebug.Node_OpDebug.5.1.18"),
        mapped("1007", binary("Opdebug.Node_OpDebug.6.1.18")),
        binary("1008"),
        json("Opdebug.Node_OpDebug.7.1.18.output.0.json"),
        mapped("1009", json("Opdebug.Node_OpDebug.8.1.18.output.0.json")),
        result("Conv2D.a.5.1.17.output.0.npy"),
        mapped("1010.npy", result("Conv2D.l.5.1.17.output.0.npy")),
        passed("Conv2D.a.5.17.txt", "failure_text"),
        passed(".hidden", "hidden"),
        passed(".opscope-tmp-1-2-3-4-5", "unfinished"),
        passed("overwrites.json", "overwrites"),
        case(".secret", Content::Directory, [Passed("hidden"); 3]),
    ];
    cases.extend(unreadable_of_acl());
    cases
}

fn unreadable_of_acl() -> Vec<Case> {
    let tensor = golden(TENSOR);
    let no_table = |name, content| case(name, bytes(content), [Unread, STATS, NoRecord]);
    let no_record = |name| case(name, bytes(b"{}"), [Unread, CONVERTED, Unread]);
    vec![
        no_table("Conv2D.a.7.1.17.csv", b""),
        mapped("1006", no_table("Conv2D.l.7.1.17.csv", b"junk")),
        damaged("Conv2D.cut.8.1.17", &tensor[..99]),
        mapped("1011", damaged("Conv2D.c.8.1.17", &tensor[..99])),
        unread("1012", bytes(b"junk")),
        unread("Opdebug.Node_OpDebug.9.1.18", bytes(b"junk")),
        no_record("Opdebug.Node_OpDebug.9.1.19.output.0.json"),
        damaged("Conv2D.empty.9.1.17", b""),
        damaged("weights.h5", b"\x89HDF"),
        damaged("x.npz", b"PK"),
        damaged("notes.md", b"notes"),
        unread("Conv2D.link.1.1.17", Content::LinkTo("Conv2D.a.5.1.17")),
        unread("Conv2D.gone.1.1.17", Content::LinkTo("nothing")),
        unread("directory", Content::LinkTo("/")),
        unread("Conv2D.pipe.1.1.17", Content::Pipe),
        unread("Opdebug.Node_OpDebug.1.1.17", Content::Pipe),
        unread("Conv2D.socket.1.1.17", Content::Socket),
    ]
}

pub(crate) fn of_mindspore() -> Vec<Case> {
    let beside =
        |name, content, show| case(name, bytes(content), [show, Passed("graph"), NoRecord]);
    let ignored = |name, reason| {
        let fate = Passed(reason);
        case(name, bytes(b"{}"), [fate, fate, NoRecord])
    };
    let order: &[u8] = b"NodeExecutionOrder-FullNameWithScope\nDefault/a-op0\n";
    vec![
        mindspore_array("Add.a-op0.0.0.5.output.0.DefaultFormat.float32.npy"),
        mapped(
            "77.npy",
            mindspore_array("Add.b-op0.0.0.5.output.0.DefaultFormat.float32.npy"),
        ),
        mindspore_array("78.npy"),
        case(
            "statistic.csv",
            bytes(STATISTIC.as_bytes()),
            [Read, STATS, NoRecord],
        ),
        tensor("Conv2D.a.5.1.17"),
        mapped("79", tensor("Conv2D.l.5.1.17")),
        tensor("80"),
        // Files that the runtime below writes beside whole graphs.
        table("Conv2D.a.6.1.17.csv"),
        mapped("81", table("Conv2D.l.6.1.17.csv")),
        binary("Opdebug.Node_OpDebug.5.1.18"),
        mapped("82", binary("Opdebug.Node_OpDebug.6.1.18")),
        json("Opdebug.Node_OpDebug.5.1.19.output.0.json"),
        mapped("83", json("Opdebug.Node_OpDebug.6.1.19.output.0.json")),
        beside("ms_execution_order_graph_0.csv", order, Read),
        beside("ms_output_trace_code_graph_0.ir", b"junk", Unread),
        ignored("acl_dump_0.json", "configuration"),
        ignored("Add.Default_a-op0.json", "kernel_arguments"),
        unread("84", bytes(b"junk")),
        damaged("notes.md", b"notes"),
        unread("85.npy", bytes(b"junk")),
        unread("Add.l-op0.0.0.5.output.0.ND.float32.npy", Content::Pipe),
    ]
}
