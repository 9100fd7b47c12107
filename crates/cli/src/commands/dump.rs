//! `opscope dump`.

mod compress;
pub(crate) mod control;
mod dry_run;
pub(crate) mod dump_report;
mod findings;
pub(crate) mod form;
mod live_page;
pub(crate) mod near_names;
mod once;
mod outputs;
mod pieces;
mod policy;
mod range;
pub(crate) mod record;
pub(crate) mod report;
mod request;
mod ring;
pub(crate) mod run_model;
mod unmatched;
mod volume;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_dump::model_file;
use opscope_engine::{ModelSignature, ModelSource};
use opscope_store::record::ModelId;
use opscope_view::RunProgress;

use self::compress::CompressArguments;
use self::control::RemoteControl;
use self::dump_report::DumpReport;
use self::live_page::LivePage;
use self::outputs::OutputFiles;
use self::policy::PolicyArguments;
use self::range::NarrowFloat;
use self::ring::RingArguments;
use self::run_model::{LoadedRun, dump_model};
use self::volume::VolumeArguments;
use super::mindspore_target::MindSporeTarget;
use super::view::ServerArguments;
use crate::arguments::ModeArguments;
use crate::console::report;
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, refuse_array};
use crate::inputs::{InputArguments, InputSource};

/// Run a model and dump its operators' inputs and outputs
///
/// A configuration chooses what to dump and in which form. Without one, the inputs and outputs of
/// every operator are dumped under `{DIR}/{time}`: a table for each step, and a few files with the
/// elements.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope dump net.onnx --input image=cat.npy --out dump
  opscope dump net.onnx --config acl.json --inputs samples.npz
  opscope dump net.onnx --config data_dump.json --target ascend-o1 --seed 0
  opscope dump net.onnx --seed 0 --shape image:1,3,224,224 --stats
  opscope dump net.onnx --inputs samples.npz --as float16
  opscope dump net.onnx --seed 0 --out dump --tensors non-finite --tensors type:Softmax
  opscope dump net.onnx --config acl.json --dry-run")]
pub(crate) struct DumpArguments {
    /// The ONNX model
    model: PathBuf,
    /// Also write the model's outputs at each step, dumped or not: `{step}/{name}.npy`, or `.bin`
    /// for dtypes that numpy lacks, and a list of them in `{step}/outputs.json`
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
    save_outputs: Option<PathBuf>,
    /// Show the dump in the browser, as `opscope view` does: operators appear while the model runs,
    /// and the page stays until Ctrl-C
    #[arg(long, conflicts_with_all = ["stats", "narrow", "dry_run"])]
    view: bool,
    #[command(flatten)]
    server: ServerArguments,
    // Last, because its headings apply to every option below them.
    #[command(flatten)]
    run: RunArguments,
}

/// How to run a model, and what to dump.
#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// Configuration that says what to dump and where: an AscendCL `acl.json` or a MindSpore dump
    /// configuration. Default: the file named by MINDSPORE_DUMP_CONFIG, if `--out`, `--stats` and
    /// `--as` are absent
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "stats", "narrow"])]
    config: Option<PathBuf>,
    /// The backend whose tree a MindSpore configuration produces [default: cpu, or ge if
    /// ENABLE_MS_GE_DUMP is 1]
    #[arg(long, value_enum, value_name = "TARGET", conflicts_with_all = ["out", "stats", "narrow", "graph_inputs"])]
    target: Option<MindSporeTarget>,
    /// Device number to record in the dump; a MindSpore configuration may exclude devices
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) device: u32,
    /// Rank to record in a MindSpore dump, `rank_{N}`
    #[arg(long, value_name = "N", default_value = "0")]
    rank: u32,
    /// Under `dump_mode` 2 of MindSpore, dump this operator, or all whose names begin with this and
    /// a `/`; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "stats", "narrow"])]
    set_dump: Vec<String>,
    /// Dump the inputs and outputs of every operator into this directory; created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "stats")]
    out: Option<PathBuf>,
    /// Form of the dump in `--out`
    #[arg(long, value_enum, value_name = "FORM", default_value = "native", conflicts_with_all = ["config", "stats"])]
    form: form::FormChoice,
    /// Also write each graph input that a selected operator reads, as an operator of type `Data`
    #[arg(long, requires = "config")]
    graph_inputs: bool,
    /// Dump complete quantisation: also the inputs and outputs of quantise and dequantise operators
    /// next to a selected one, and the float values of quantised tensors that the model does not
    /// compute
    #[arg(long)]
    quant_dumpable: bool,
    /// Write no tensors; print a table of every tensor's statistics
    #[arg(long)]
    stats: bool,
    /// Report tensors that would overflow in this dtype, and end with 1 if there are any; may be
    /// repeated
    #[arg(long = "as", id = "narrow", value_name = "DTYPE")]
    narrow: Vec<NarrowFloat>,
    #[command(flatten)]
    pub(crate) inputs: InputArguments,
    /// Number of runs of the model [default: one, or one for each set of inputs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Threads that the engine may use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Resources")]
    threads: Option<u16>,
    /// Number of writer threads
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Resources")]
    writers: u16,
    /// Maximum tensor bytes, in MiB, that wait to be written before the model has to wait
    #[arg(
        long,
        value_name = "MIB",
        default_value = "256",
        help_heading = "Resources"
    )]
    queue_mib: u32,
    /// Skip the run without a dump that is timed for comparison
    #[arg(long)]
    no_baseline: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    pub(crate) ring: RingArguments,
    #[command(flatten)]
    modes: ModeArguments,
    #[command(flatten)]
    pub(crate) control: control::ControlArguments,
    #[command(flatten)]
    pub(crate) policy: PolicyArguments,
    #[command(flatten)]
    pub(crate) once: once::OnceArguments,
    #[command(flatten)]
    pub(crate) compress: CompressArguments,
    #[command(flatten)]
    pub(crate) volume: VolumeArguments,
}

pub(crate) fn run(arguments: &DumpArguments) -> CommandResult {
    run_with(arguments, |report| {
        if arguments.run.json {
            return report::print_report_json(report);
        }
        report::print(report)?;
        if arguments.view {
            return Ok(());
        }
        report::print_next(report)
    })
}

/// [`run`] with another use of the report than printing it.
pub(crate) fn run_with(
    arguments: &DumpArguments,
    show: impl FnOnce(&DumpReport) -> CommandResult,
) -> CommandResult {
    let options = &arguments.run;
    refuse_array(&arguments.model)?;
    // Reports a configuration mistake before loading a large model for nothing.
    let request = options.request()?.for_models();
    // SIGUSR1 may come while the model loads, and its default action would end the process.
    let remote = RemoteControl::start(options, &request, false)?;
    let engine = options.engine()?;
    let source = ModelSource::File(&arguments.model);
    let (model, engine) = engine.load(source, request.plan.purpose)?;
    let id = ModelId {
        file_stem: file_stem(&arguments.model),
        graph_name: model.signature().graph_name.clone(),
        // AscendCL numbers the models of a process; this process loads one.
        load: Some(1),
        device: options.device,
    };
    let output_files = (arguments.save_outputs.as_deref())
        .map(|dir| OutputFiles::new(dir, model.signature(), options.modes.modes()))
        .transpose()?;
    let mut run = LoadedRun {
        engine: engine.clone(),
        model,
        title: id.file_stem.clone(),
        id,
        output_files,
    };
    let inputs = options.input_source(run.model.signature())?;
    // Checks the first step's inputs before anything is created.
    inputs.step(0)?;
    let dump = options.open(&request)?;
    let file = model_file(&run.title, Some(&arguments.model), &run.id.graph_name);
    let mut recorder = record::begin(("dump", &engine), options, &request, &dump, vec![file]);
    // A failure to write the descriptions counts like a failure to write a tensor.
    let begun = recorder.begun();
    let described = dump.describe(&*run.model, &run.id);
    let is_described = *described.as_ref().unwrap_or(&true);
    let failed = begun.and(described.map(drop)).err();
    let progress = RunProgress {
        title: run.title.clone(),
        n_steps: options.steps.unwrap_or(inputs.n_sets()),
        ..RunProgress::default()
    };
    let page = (arguments.view)
        .then(|| LivePage::begin(&dump, progress, &arguments.server, options.json))
        .transpose()?;
    let ended = dump_model(options, &request, &dump, &mut run, &inputs, &remote, failed)?;
    let (mut report, result) = ended;
    // Dumps of overflows or failing operators create no directory until there is a finding, so the
    // description may not have been written yet.
    let mut described = Ok(());
    if !is_described {
        let late = dump.describe(&*run.model, &run.id).map(drop);
        described = late.map_err(|error| CommandFailure::new(PARTIAL, error));
    }
    recorder.add(report.n_steps, &report.summary);
    report.left_overs = recorder.left_overs(&dump);
    // The record comes before the report, whose reader may be gone. The run's result matters more
    // than a failed record, which is reported last.
    let recorded = record::finish(recorder, &dump, &result);
    show(&report)?;
    if let Some(page) = page {
        page.finish(&result);
    }
    run_model::finish(report, result)?;
    described.and(recorded)
}

impl RunArguments {
    /// The source of the model's inputs.
    pub(crate) fn input_source(&self, signature: &ModelSignature) -> CommandResult<InputSource> {
        let source = InputSource::new(&self.inputs, self.volume.dry_run, signature)?;
        if let Some(note) = source.random_note(&self.inputs)? {
            report!("opscope: inputs: random: {note}");
        }
        Ok(source)
    }

    /// The engine that these options request; its name is printed to standard error.
    pub(crate) fn engine(&self) -> CommandResult<Arc<EngineInUse>> {
        let n_threads = self
            .threads
            .map_or_else(opscope_analysis::default_jobs, usize::from);
        let engine = EngineInUse::new(&self.engine, &self.graph, n_threads, self.json)?;
        Ok(Arc::new(engine))
    }
}

/// The file name after the last `/`, cut at the last `.`.
pub(crate) fn file_stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
