//! `run.json`: a run's request, results and end.
//!
//! An object; unknown keys are ignored, and missing keys have their default.
//! `docs/formats/run_json.md` lists them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::FormatError;
use crate::owner::OwnerProcess;
use crate::temporary::LeftOvers;

/// The version that is written.
pub const VERSION: u32 = 1;
/// Maximum size of a file.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes of a name or message; the rest is cut off.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Maximum size of a configuration whose text is kept.
pub const CONFIGURATION_BYTES_MAX: usize = 64 << 10;
/// Maximum number of listed models.
const N_MODELS_MAX: usize = 64;
/// Maximum number of listed device interfaces.
const N_PROVIDERS_MAX: usize = 64;

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is running, or was killed: [`RunRecord::process`] distinguishes them.
    Running,
    /// It finished.
    Finished,
    /// A signal stopped it after it had written its data.
    Interrupted,
    /// The model or the tool failed; earlier results exist.
    Failed,
    /// A state of a later version.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RunState {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Interrupted => "interrupted",
            RunState::Failed => "failed",
            RunState::Unknown => "unknown",
        }
    }
}

/// The record of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Version of the format.
    pub version: u32,
    /// Identifies this run.
    pub id: String,
    /// The program that wrote the dump.
    pub tool: ProgramVersion,
    /// The state of the run.
    pub state: RunState,
    /// The process that writes the dump.
    pub process: OwnerProcess,
    /// The machine.
    pub host: HostMachine,
    /// The processes that ran together, if there were several.
    pub world: Option<ProcessWorld>,
    /// When the dump began, RFC 3339, UTC, with microseconds.
    pub started: String,
    /// When it ended.
    pub ended: Option<String>,
    /// The command, such as `dump`, or the interface that was called.
    pub command: String,
    /// The configuration file, if there was one.
    pub configuration: Option<ConfigurationFile>,
    /// The format of the dump.
    pub dialect: String,
    /// Summary of what was kept.
    pub plan: BTreeMap<String, String>,
    /// The engine that ran the models.
    pub engine: ProgramVersion,
    /// The file that the engine was loaded from, if it is not part of the tool.
    pub engine_library: Option<String>,
    /// Which graph of the models ran: `original` or `executed`.
    pub engine_graph: Option<String>,
    /// The interfaces of devices that operators were to run on, the preferred one first; none for
    /// the CPU alone.
    pub engine_providers: Vec<String>,
    /// Threads of the engine.
    pub n_engine_threads: u64,
    /// Threads that write files.
    pub n_writers: u64,
    /// The models, or operators that ran on their own; the first 64.
    pub models: Vec<ModelFile>,
    /// Executions of the models.
    pub n_steps: u64,
    /// The counts of the session, by name.
    pub counters: BTreeMap<String, u64>,
    /// The first error of writing.
    pub first_error: Option<String>,
    /// The first tensor with NaN or an infinity.
    pub first_non_finite: Option<NonFiniteFinding>,
    /// Deliberate infinities, such as those of a mask.
    pub deliberate_infinities: Option<DeliberateFinding>,
    /// The first operator whose arithmetic overflowed.
    pub first_overflow: Option<OverflowFinding>,
    /// Counts of the unfinished files of earlier, killed runs that this run removed.
    pub left_overs: LeftOvers,
    /// When a later run removed what this one left unfinished.
    pub cleaned: Option<CleanupNote>,
}

/// Processes that run together, each with a separate dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWorld {
    /// Number of processes.
    pub size: u64,
    /// Which of them this is, counted from 0.
    pub rank: u64,
}

/// A program and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramVersion {
    /// Its name.
    pub name: String,
    /// Its version, if it is known.
    pub version: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostMachine {
    /// Its name.
    pub name: String,
    /// The operating system and its release.
    pub os: String,
    /// The processor's name.
    pub cpu: String,
    /// Number of processors that the process may use.
    pub n_cpus: u64,
}

/// A configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigurationFile {
    /// Its path, as given by the user.
    pub path: String,
    /// The 128-bit XXH3 digest of its bytes.
    pub xxh3_128: String,
    /// Its text, unless that is longer than 64 KiB.
    pub text: Option<String>,
}

/// A model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFile {
    /// The model's name in reports.
    pub name: String,
    /// The name of its file without directories, if it came from a file.
    pub file: Option<String>,
    /// Size of the file.
    pub n_bytes: Option<u64>,
    /// The 128-bit XXH3 digest of the file's bytes.
    pub xxh3_128: Option<String>,
    /// The graph's name.
    pub graph: String,
}

/// The first tensor with NaN or an infinity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NonFiniteFinding {
    /// Execution of the model.
    pub step: u64,
    /// The graph.
    pub graph: String,
    /// Position of the operator in the model.
    pub task_id: u32,
    /// The operator's type.
    pub op_type: String,
    /// The operator's name.
    pub op_name: String,
    /// The module that the operator belongs to; empty if unknown.
    pub module: String,
    /// File, line and function of the call; empty if unknown.
    pub source: String,
    /// Such as `output.0`.
    pub slot: String,
    /// The first such element in row-major order.
    pub element: Option<u64>,
    /// That element: `NaN`, `Inf` or `-Inf`.
    pub value: String,
    /// The largest magnitude that the infinite elements would have in a wider dtype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<f64>,
    /// Its origin: `computed`, `given`, `constant` or `unknown`.
    pub origin: String,
    /// Number of NaN.
    pub nan: u64,
    /// Number of positive infinities.
    pub pos_inf: u64,
    /// Number of negative infinities.
    pub neg_inf: u64,
}

/// Deliberate infinities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliberateFinding {
    /// Number of operator executions that created them, read them or passed them on.
    pub n_operators: u64,
    /// The first of them.
    pub first: Option<NonFiniteFinding>,
}

/// The first operator whose arithmetic overflowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverflowFinding {
    /// Execution of the model.
    pub step: u64,
    /// Position of the operator in the model.
    pub task_id: u32,
    /// The operator's type.
    pub op_type: String,
    /// The operator's name.
    pub op_name: String,
    /// The status bits.
    pub status: u64,
}

/// The cleanup of this run by a later one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CleanupNote {
    /// When, as [`RunRecord::started`].
    pub at: String,
    /// Counts of the unfinished files that it found.
    #[serde(flatten)]
    pub left_overs: LeftOvers,
}

/// The file's text. Names and messages are cut to 4 KiB.
pub fn encode(record: &RunRecord) -> String {
    // Neither numbers nor text can fail to be written to memory.
    let text = serde_json::to_string_pretty(&bounded(record.clone())).unwrap_or_default();
    text + "\n"
}

/// Reads a file's bytes.
///
/// # Errors
/// [`FormatError`] if there are too many, or if they are not a JSON object with a `version` and
/// keys of the right types.
pub fn parse(bytes: &[u8]) -> Result<RunRecord, FormatError> {
    if bytes.len() > FILE_BYTES_MAX {
        let found = format!("{} bytes", bytes.len());
        let expected = format!("at most {FILE_BYTES_MAX} bytes");
        return Err(FormatError::new(FILE_BYTES_MAX as u64, expected, found));
    }
    // Serde would also accept a list with the fields in order.
    if bytes
        .trim_ascii_start()
        .first()
        .is_some_and(|byte| *byte != b'{')
    {
        return Err(FormatError::new(0, "an object", "something else"));
    }
    let record: RunRecord = serde_json::from_slice(bytes).map_err(|error| {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let before: usize = lines
            .take(error.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        let offset = before + error.column().saturating_sub(1);
        FormatError::new(offset as u64, "the record of a run", error.to_string())
    })?;
    // Every key has a default, so `{}` parses; only the version shows that it is a record.
    if record.version == 0 {
        return Err(FormatError::new(0, "a record with a `version`", "none"));
    }
    Ok(record)
}

fn bounded(mut record: RunRecord) -> RunRecord {
    // Names come from models and may have any length, but `parse` limits the size of the file.
    record.models.truncate(N_MODELS_MAX);
    for model in &mut record.models {
        cut(&mut model.name);
        cut(&mut model.graph);
        model.file.iter_mut().for_each(cut);
    }
    record.first_error.iter_mut().for_each(cut);
    record.engine_library.iter_mut().for_each(cut);
    record.engine_providers.truncate(N_PROVIDERS_MAX);
    record.engine_providers.iter_mut().for_each(cut);
    record.first_non_finite.iter_mut().for_each(cut_finding);
    let deliberate = record.deliberate_infinities.iter_mut();
    deliberate
        .filter_map(|found| found.first.as_mut())
        .for_each(cut_finding);
    if let Some(first) = &mut record.first_overflow {
        cut(&mut first.op_type);
        cut(&mut first.op_name);
    }
    if let Some(configuration) = &mut record.configuration {
        cut(&mut configuration.path);
        // A truncated configuration would not be JSON. Its digest still identifies it.
        configuration.text = configuration
            .text
            .take()
            .filter(|text| text.len() <= CONFIGURATION_BYTES_MAX);
    }
    record
}

fn cut_finding(found: &mut NonFiniteFinding) {
    let texts = [
        &mut found.graph,
        &mut found.op_type,
        &mut found.op_name,
        &mut found.module,
        &mut found.source,
    ];
    texts.into_iter().for_each(cut);
}

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        // `truncate` panics inside a character.
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> RunRecord {
        RunRecord {
            version: VERSION,
            id: "1-2-0000000000000003-4-0".into(),
            tool: ProgramVersion {
                name: "opscope".into(),
                version: Some("0.1.0".into()),
            },
            state: RunState::Finished,
            process: OwnerProcess {
                pid: 1,
                start_ticks: 2,
                boot: u64::MAX,
                pid_namespace: 4,
            },
            ended: Some("2024-01-02T03:04:05.000006Z".into()),
            configuration: Some(ConfigurationFile {
                text: Some("{\"dump\": {}}".into()),
                ..ConfigurationFile::default()
            }),
            engine_library: Some("libonnxruntime.so.1.31.1".into()),
            engine_graph: Some("executed".into()),
            engine_providers: vec!["CUDAExecutionProvider".into()],
            counters: BTreeMap::from([("n_written".into(), u64::MAX)]),
            models: vec![ModelFile::default()],
            first_non_finite: Some(NonFiniteFinding::default()),
            first_overflow: Some(OverflowFinding::default()),
            cleaned: Some(CleanupNote::default()),
            ..RunRecord::default()
        }
    }

    #[test]
    fn records_come_back() {
        let record = record();
        assert_eq!(parse(encode(&record).as_bytes()).unwrap(), record);
    }

    #[test]
    fn unknown_keys_and_states_are_passed_over() {
        let text =
            r#"{"version": 9, "state": "paused", "new": [{}], "tool": {"name": "x", "y": 1}}"#;
        let record = parse(text.as_bytes()).unwrap();
        assert_eq!((record.version, record.state), (9, RunState::Unknown));
        assert_eq!(record.tool.name, "x");
        assert_eq!(record.counters, BTreeMap::new());
    }

    #[test]
    fn other_text_is_refused_at_its_place() {
        let deep = "[".repeat(1000);
        let long = " ".repeat(FILE_BYTES_MAX + 1);
        let cases = [
            ("", 0),
            ("{}", 0),
            ("[]", 0),
            ("[1]", 0),
            ("{\n\"version\": -1}", 14),
            ("{\"version\": 1, \"counters\": {\"a\": \"b\"}}", 35),
            ("{\"version\": 1", 12),
            (&long, FILE_BYTES_MAX as u64),
        ];
        for (text, offset) in cases {
            let error = parse(text.as_bytes()).unwrap_err();
            let start: String = text.chars().take(40).collect();
            assert_eq!(error.offset, offset, "{start}: {error}");
        }
        assert!(parse(format!("{{\"version\": 1, \"x\": {deep}").as_bytes()).is_err());
    }

    #[test]
    fn long_text_is_cut_and_stays_readable() {
        let long = "é\"".repeat(1 << 20);
        let record = RunRecord {
            first_error: Some(long.clone()),
            engine_library: Some(long.clone()),
            engine_providers: vec![long.clone(); 100],
            configuration: Some(ConfigurationFile {
                text: Some(long.clone()),
                ..ConfigurationFile::default()
            }),
            models: vec![
                ModelFile {
                    name: long.clone(),
                    graph: long,
                    ..ModelFile::default()
                };
                1000
            ],
            ..record()
        };
        let read = parse(encode(&record).as_bytes()).unwrap();
        assert_eq!(read.models.len(), N_MODELS_MAX);
        assert!(read.first_error.unwrap().len() <= TEXT_BYTES_MAX + 3);
        assert!(read.engine_library.unwrap().len() <= TEXT_BYTES_MAX + 3);
        assert_eq!(read.engine_providers.len(), N_PROVIDERS_MAX);
        assert_eq!(read.configuration.unwrap().text, None);
    }
}
