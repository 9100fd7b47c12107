//! `{op_type}.{op_name}.{task}.{stream}.{timestamp}.{side}.{slot}.{layout}.{dtype}.npy`, with
//! `.zst` after it if the file is compressed

use std::fmt;

use opscope_tensor::DType;

use super::{PARAMETER, number};
use crate::file_format::{ms_dtype, npy_zst};
use crate::record::SlotSide;
use crate::tree::acl::clean_name;
use crate::tree::acl::{DumpFileName, SubTask};

/// Names of layouts in file names.
pub const LAYOUT_NAMES: &[&str] = &[
    "DefaultFormat",
    "NCHW",
    "NHWC",
    "NHWC4",
    "HWKC",
    "HWCK",
    "KCHW",
    "CKHW",
    "KHWC",
    "CHWK",
    "HW",
    "HW4",
    "NC",
    "NC4",
    "NC4HW4",
    "NCDHW",
    "NWC",
    "NCW",
    "NDHWC",
    "NC8HW8",
    "FRACTAL_NZ",
    "ND",
    "NC1HWC0",
    "FRACTAL_Z",
    "NC1C0HWPAD",
    "NHWC1C0",
    "FSR_NCHW",
    "FRACTAL_DECONV",
    "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE",
    "FRACTAL_DECONV_SP_STRIDE_TRANS",
    "NC1HWC0_C04",
    "FRACTAL_Z_C04",
    "CHWN",
    "FRACTAL_DECONV_SP_STRIDE8_TRANS",
    "HWCN",
    "NC1KHKWHWC0",
    "BN_WEIGHT",
    "FILTER_HWCK",
    "LOOKUP_LOOKUPS",
    "LOOKUP_KEYS",
    "LOOKUP_VALUE",
    "LOOKUP_OUTPUT",
    "LOOKUP_HITS",
    "C1HWNCoC0",
    "MD",
    "FRACTAL_ZZ",
    "DHWCN",
    "NDC1HWC0",
    "FRACTAL_Z_3D",
    "CN",
    "DHWNC",
    "FRACTAL_Z_3D_TRANSPOSE",
    "FRACTAL_ZN_LSTM",
    "FRACTAL_Z_G",
    "ND_RNN_BIAS",
    "FRACTAL_ZN_RNN",
    "NYUV",
    "NYUV_A",
    "NCL",
];

/// The parts of the name of a tensor's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFileName {
    /// The operator's type; `Parameter` for a parameter.
    pub op_type: String,
    /// The operator's full name, or the parameter's name, characters replaced.
    pub op_name: String,
    /// The task.
    pub task_id: u32,
    /// The stream.
    pub stream_id: u32,
    /// Microseconds since 1970-01-01 UTC.
    pub timestamp: u64,
    /// Four more numbers in names that begin with that of a newer runtime's file.
    pub sub_task: Option<SubTask>,
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub slot: u32,
    /// Name of the layout.
    pub layout: String,
    /// Name of the dtype before any conversion, in either spelling; older versions leave it out.
    pub dtype: Option<String>,
    /// Whether the file is compressed, which MindSpore itself never does.
    pub is_compressed: bool,
}

impl TensorFileName {
    /// Splits a file name from the right, or returns `None` if it does not follow the pattern.
    pub fn parse(name: &str) -> Option<TensorFileName> {
        let (mut rest, is_compressed) = npy_zst::split_name(name)?;
        // Older versions write no dtype, so the side is the third or the fourth field from the
        // right.
        let (a, b, c) = (last(&mut rest)?, last(&mut rest)?, last(&mut rest)?);
        let (side, slot, layout, dtype) = match side_of(c) {
            // Without a dtype only a known layout distinguishes the name from those of other tools.
            Some(side) if LAYOUT_NAMES.contains(&a) => (side, b, a, None),
            Some(_) => return None,
            None => (side_of(last(&mut rest)?)?, c, b, Some(a)),
        };
        let slot = number(slot)?;
        if layout.is_empty() || dtype.is_some_and(str::is_empty) {
            return None;
        }
        let head = rest;
        let (timestamp, stream_id, task_id) =
            (last(&mut rest)?, last(&mut rest)?, last(&mut rest)?);
        let (op_type, op_name) = rest.split_once('.')?;
        let mut parsed = TensorFileName {
            op_type: op_type.to_owned(),
            op_name: op_name.to_owned(),
            task_id: number(task_id)?,
            stream_id: number(stream_id)?,
            timestamp: number(timestamp)?,
            sub_task: None,
            side,
            slot,
            layout: layout.to_owned(),
            dtype: dtype.map(str::to_owned),
            is_compressed,
        };
        // The names of operators lose their dots: one in here may come from the numbers that newer
        // runtimes append.
        if op_name.contains('.') {
            parsed.take_sub_task(head);
        }
        (!op_type.is_empty()).then_some(parsed)
    }

    /// The numbers at the end of `head` are not the task, the stream and the time, but what newer
    /// runtimes append to those.
    fn take_sub_task(&mut self, head: &str) {
        let Some(name) = DumpFileName::parse(head).filter(|name| name.sub_task.is_some()) else {
            return;
        };
        if let (Some(stream_id), Some(timestamp)) = (name.stream_id, number(&name.timestamp)) {
            self.op_type = name.op_type;
            self.op_name = name.op_name;
            self.task_id = name.task_id;
            self.stream_id = stream_id;
            self.timestamp = timestamp;
            self.sub_task = name.sub_task;
        }
    }

    /// Name of the file of an operator's input or output. The operator's type is the only part that
    /// may hold dots, and loses them too: a reader could not find its end.
    pub fn of_operator(op_type: &str, full_name: &str) -> TensorFileName {
        TensorFileName {
            op_type: clean_name(op_type),
            op_name: clean_name(full_name),
            task_id: 0,
            stream_id: 0,
            timestamp: 0,
            sub_task: None,
            side: SlotSide::Output,
            slot: 0,
            layout: super::DEFAULT_LAYOUT.to_owned(),
            dtype: None,
            is_compressed: false,
        }
    }

    /// Name of the file of a parameter.
    pub fn of_parameter(name: &str) -> TensorFileName {
        TensorFileName::of_operator(PARAMETER, name)
    }

    /// Name of the file of a constant, counted from 0 in its graph.
    pub fn of_constant(index: usize) -> TensorFileName {
        TensorFileName::of_parameter(&format!("data-{index}"))
    }

    /// Whether it is a parameter's, or a constant's.
    pub fn is_parameter(&self) -> bool {
        self.op_type == PARAMETER
    }

    /// The dtype in the name, if it is a known one.
    pub fn known_dtype(&self) -> Option<DType> {
        ms_dtype::from_name(self.dtype.as_deref()?)
    }
}

impl fmt::Display for TensorFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op_type, op_name) = (&self.op_type, &self.op_name);
        let (task_id, stream_id, timestamp) = (self.task_id, self.stream_id, self.timestamp);
        write!(f, "{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}")?;
        if let Some(sub) = self.sub_task {
            let (kind, context) = (sub.task_type, sub.context_id);
            write!(f, ".{kind}.{context}.{}.{}", sub.thread_id, sub.device_id)?;
        }
        write!(f, ".{}.{}.{}", self.side.name(), self.slot, self.layout)?;
        if let Some(dtype) = &self.dtype {
            write!(f, ".{dtype}")?;
        }
        f.write_str(if self.is_compressed {
            npy_zst::SUFFIX
        } else {
            npy_zst::PLAIN_SUFFIX
        })
    }
}

/// Takes the last field off.
fn last<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (head, field) = rest.rsplit_once('.')?;
    *rest = head;
    Some(field)
}

fn side_of(field: &str) -> Option<SlotSide> {
    [SlotSide::Input, SlotSide::Output]
        .into_iter()
        .find(|side| side.name() == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in [
            "Conv2D.Default_conv1-Conv2d_Conv2D-op0.0.0.1700000000000000.output.0.DefaultFormat.Float32.npy",
            "Conv2D.Default_x-op0.0.3.1700000000000000.input.12.NC1HWC0.bfloat16.npy",
            "Parameter.conv1_weight.0.0.1795237604330278.output.0.DefaultFormat.Float32.npy",
            "Parameter.data-3.0.0.1.output.0.DefaultFormat.int64.npy",
            "Conv2D.Conv2D-op12.0.0.1623124369613540.output.0.DefaultFormat.npy",
            "Add.a.5.7.1700000000000000.4.1.2.0.output.1.ND.float16.npy",
            "Less.Default_ä:*|-op0.0.0.1.output.0.FRACTAL_NZ.some_new_type.npy",
            "input.output.0.0.1.input.0.NCHW.uint8.npy",
            "Conv2D.Default_x-op0.0.3.17.input.12.NC1HWC0.bfloat16.npy.zst",
            "Conv2D.Conv2D-op12.0.0.16.output.0.DefaultFormat.npy.zst",
        ] {
            let parsed = TensorFileName::parse(name).unwrap();
            assert_eq!(parsed.to_string(), name);
        }
    }

    #[test]
    fn parts_are_taken_from_the_right() {
        let name = "my.op.x.y.1.2.3.input.4.ND.Int8.npy";
        let parsed = TensorFileName::parse(name).unwrap();
        assert_eq!((&*parsed.op_type, &*parsed.op_name), ("my", "op.x.y"));
        assert_eq!(
            (parsed.task_id, parsed.stream_id, parsed.timestamp),
            (1, 2, 3)
        );
        assert_eq!((parsed.side, parsed.slot), (SlotSide::Input, 4));
        assert_eq!(parsed.known_dtype(), Some(DType::I8));
        let name = "Add.a.5.7.17.4.1.2.0.output.1.ND.float16.npy";
        let parsed = TensorFileName::parse(name).unwrap();
        assert_eq!(
            (&*parsed.op_name, parsed.task_id, parsed.timestamp),
            ("a", 5, 17)
        );
    }

    #[test]
    fn other_names_are_none() {
        for name in [
            "",
            ".npy",
            "148030774.npy",
            "148030774.npy.zst",
            "Add.a.1.0.5.output.0.ND.float32.zst",
            "Add.a.1.0.5.output.0.ND.float32.npy.zst.zst",
            "statistic.csv",
            "Add.a.1.0.5.output.0.npy",
            "Add.a.1.0.5.output.0.2x3.npy",
            "Add.a.1.0.5.output.0.ND.float32.bin",
            "Add.a.1.0.5.result.0.ND.float32.npy",
            "Add.a.1.0.5.output.x.ND.float32.npy",
            "Add.a.1.0.-5.output.0.ND.float32.npy",
            "Add.a.1.0.99999999999999999999.output.0.ND.float32.npy",
            ".a.1.0.5.output.0.ND.float32.npy",
            "1.0.5.output.0.ND.float32.npy",
        ] {
            assert_eq!(TensorFileName::parse(name), None, "{name}");
        }
    }
}
