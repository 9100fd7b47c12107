//! `opscope gears`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::builder::ArgGroup;
use opscope_analysis::compare::report;
use opscope_capture::Purpose;
use opscope_config::dialect::insert_op;
use opscope_config::read_text;
use opscope_engine::{
    DeclaredDim, FallbackModel, LoadOptions, LoadedModel, ModelSignature, ModelSource, ValueInfo,
};
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::gears_json::{
    self, AippMode, AippOp, ExtentGear, FILE_BYTES_MAX, GearInput, GearKind, GearOutput, Gears,
    OPEN,
};
use opscope_store::regular_file;
use opscope_tensor::{DType, Shape, Tensor};

use crate::arguments::ModeArguments;
use crate::console::{self, line};
use crate::engine::EngineArguments;
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE};

/// List the sizes (gears) between which AscendCL programs may switch a model with dynamic
/// dimensions, and how its images are preprocessed (AIPP)
///
/// Writes `MODEL.gears.json` next to the model. The model runs once for each gear to infer the
/// shapes of its results. Without gears or AIPP options, the existing file is printed.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("kind"), group = ArgGroup::new("written").multiple(true), after_help = "Examples:
  opscope gears net.onnx --batch 1,2,4,8
  opscope gears net.onnx --size 224,224;448,448
  opscope gears net.onnx --shape x:-1,3,-1,-1 --dims 1,224,224;8,448,448
  opscope gears net.onnx --shape x:1,3,224,224 --insert-op-conf aipp.cfg
  opscope gears net.onnx")]
pub(crate) struct GearsArguments {
    /// The model
    model: PathBuf,
    /// Batch sizes: values of the inputs' first axis
    #[arg(long, value_name = "N,N,...", groups = ["kind", "written"])]
    batch: Option<String>,
    /// Image sizes: values of height and width
    #[arg(long, value_name = "H,W;H,W;...", groups = ["kind", "written"])]
    size: Option<String>,
    /// Values of all dynamic dimensions together, in the order of inputs and axes
    #[arg(long, value_name = "N,...;N,...", groups = ["kind", "written"])]
    dims: Option<String>,
    /// How to preprocess images for inputs: the file that the vendor's converter takes under the
    /// same option
    #[arg(long, value_name = "FILE", group = "written")]
    insert_op_conf: Option<PathBuf>,
    /// Shape of an input, with -1 for dimensions that gears set; may be repeated [default: the
    /// model's]
    #[arg(long, value_name = "NAME:-1,3,224,224", requires = "written")]
    shape: Vec<String>,
    /// The file to write [default: next to the model]
    #[arg(long, value_name = "FILE", requires = "written")]
    out: Option<PathBuf>,
    /// Replace the file of `--out` if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Print the file instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    modes: ModeArguments,
}

/// The kind of the gears, and the values of each.
type ListedGears = (GearKind, Vec<Vec<u64>>);

/// Dtype and shape of a result.
type ResultType = (DType, Vec<i64>);

pub(crate) fn run(arguments: &GearsArguments) -> CommandResult {
    let gears = match arguments.asked()? {
        None => arguments.read()?,
        Some((kind, values)) => {
            // Read first, because running the model takes longer.
            let aipp = arguments.aipp()?;
            let gears = arguments.make(kind, values)?;
            let gears = gears.with_aipp(aipp);
            let gears = gears.map_err(|reason| {
                let message = format!("--insert-op-conf: {reason}");
                CommandFailure::message(USAGE, message)
            })?;
            let path = arguments.path();
            let text = gears_json::encode(&gears);
            let creator = Creator::new(arguments.modes.modes());
            // The file next to the model belongs to this command.
            let is_replacing = arguments.force || arguments.out.is_none();
            report::save_with(&path, &creator, is_replacing, |out| {
                out.write_all(text.as_bytes())
            })?;
            gears
        }
    };
    print(&gears, arguments.json)
}

impl GearsArguments {
    fn path(&self) -> PathBuf {
        self.out
            .clone()
            .unwrap_or_else(|| gears_json::path_of(&self.model))
    }

    /// The kind and values of the gears to write, if any.
    fn asked(&self) -> CommandResult<Option<ListedGears>> {
        let (option, kind, text) = match (&self.batch, &self.size, &self.dims) {
            // A batch gear is a single number, so commas separate gears; elsewhere they separate
            // the numbers of a gear.
            (Some(text), ..) => ("--batch", GearKind::Batch, text.replace(',', ";")),
            (_, Some(text), _) => ("--size", GearKind::Size, text.clone()),
            (.., Some(text)) => ("--dims", GearKind::Dims, text.clone()),
            // A single gear without numbers.
            _ if self.insert_op_conf.is_some() => {
                return Ok(Some((GearKind::Fixed, vec![Vec::new()])));
            }
            _ => return Ok(None),
        };
        let gears = text.split(';').map(|gear| {
            let values = gear.split([',', 'x']);
            values.map(|value| value.trim().parse().ok()).collect()
        });
        let gears: Option<Vec<Vec<u64>>> = gears.collect();
        let gears = gears.ok_or_else(|| {
            let message = format!("{option}: expected numbers, with commas between them");
            CommandFailure::message(USAGE, message)
        })?;
        Ok(Some((kind, gears)))
    }

    /// How inputs are preprocessed, if that is to be written.
    fn aipp(&self) -> CommandResult<Vec<AippOp>> {
        let Some(path) = &self.insert_op_conf else {
            return Ok(Vec::new());
        };
        let text = read_text(path)?;
        insert_op::parse(&text).map_err(|error| {
            let message = format!("`{}`, {error}", path.display());
            CommandFailure::message(USAGE, message)
        })
    }

    fn read(&self) -> CommandResult<Gears> {
        let path = self.path();
        let unreadable = |reason: String| {
            let error = anyhow!("`{}`: {reason}", path.display());
            CommandFailure::new(UNREADABLE, error)
        };
        let bytes = regular_file::read(&path, FILE_BYTES_MAX as u64).map_err(|error| {
            let is_absent = error.kind() == std::io::ErrorKind::NotFound;
            // A missing file has most likely never been written, so the hint names the options that
            // write it. Other faults need another answer.
            let failure = unreadable(error.to_string());
            if is_absent {
                failure.with_hint("`--batch`, `--size`, `--dims` or `--insert-op-conf` writes it")
            } else {
                failure
            }
        })?;
        gears_json::parse(&bytes).map_err(|error| {
            let (offset, expected, found) = (error.offset, error.expected, error.found);
            unreadable(format!(
                "at byte {offset}: expected {expected}, found {found}"
            ))
        })
    }

    /// Runs the model in every gear.
    fn make(&self, kind: GearKind, values: Vec<Vec<u64>>) -> CommandResult<Gears> {
        let chosen = self.engine.choose()?;
        let n_threads = opscope_analysis::default_jobs();
        let options = LoadOptions::with_threads(n_threads);
        let FallbackModel { mut model, .. } =
            chosen.load(ModelSource::File(&self.model), &options, Purpose::Values)?;
        let signature = model.signature().clone();
        let inputs = self.inputs(kind, &signature)?;
        let gears = values.into_iter().map(|values| ExtentGear {
            values,
            outputs: Vec::new(),
        });
        // Checks the gears' inputs before anything runs.
        let gears = Gears::new(kind, inputs, Vec::new(), gears.collect());
        let mut gears = gears.map_err(usage)?;
        let mut dtypes: Vec<Option<DType>> = vec![None; signature.outputs.len()];
        let mut outputs = Vec::new();
        for gear in &gears.gears {
            let dims = gears.input_dims(gear);
            let results = results(&mut *model, &signature, &dims, &gear.values)?;
            for (known, (dtype, _)) in dtypes.iter_mut().zip(&results) {
                // The computed dtype takes precedence over the declared one.
                *known = Some(*dtype);
            }
            outputs.push(results.into_iter().map(|(_, dims)| dims).collect());
        }
        for (gear, outputs) in gears.gears.iter_mut().zip(outputs) {
            gear.outputs = outputs;
        }
        let outputs = signature.outputs.iter().zip(dtypes);
        let outputs = outputs.map(|(value, dtype)| GearOutput {
            name: value.name.clone(),
            dtype: dtype.unwrap_or(value.dtype).to_string(),
        });
        Gears::new(gears.kind, gears.inputs, outputs.collect(), gears.gears).map_err(usage)
    }

    /// The model's inputs, with shapes from `--shape` or from the model.
    fn inputs(&self, kind: GearKind, signature: &ModelSignature) -> CommandResult<Vec<GearInput>> {
        let mut shapes = Vec::new();
        for text in &self.shape {
            let parsed = text.rsplit_once(':').and_then(|(name, dims)| {
                let dims = dims
                    .split([',', 'x'])
                    .map(|dim| dim.trim().parse::<i64>().ok());
                Some((name, dims.collect::<Option<Vec<i64>>>()?))
            });
            let (name, dims) = parsed
                .ok_or_else(|| usage(format!("--shape {text}: expected NAME:-1,3,224,224")))?;
            if !signature.inputs.iter().any(|input| input.name == name) {
                let names: Vec<&str> = signature
                    .inputs
                    .iter()
                    .map(|input| input.name.as_str())
                    .collect();
                let names = names.join(", ");
                return Err(usage(format!(
                    "--shape {text}: the model's inputs are {names}"
                )));
            }
            shapes.push((name, dims));
        }
        let mut inputs = Vec::new();
        for value in &signature.inputs {
            // The last `--shape` of an input wins.
            let shape = shapes.iter().rev().find(|(name, _)| *name == value.name);
            let dims = match shape {
                Some((_, dims)) => dims.clone(),
                None => own_dims(kind, value)?,
            };
            check(value, &dims)?;
            let name = value.name.clone();
            inputs.push(GearInput { name, dims });
        }
        Ok(inputs)
    }
}

/// The input's declared shape; gears of this kind must set its dynamic dimensions.
fn own_dims(kind: GearKind, value: &ValueInfo) -> CommandResult<Vec<i64>> {
    let name = &value.name;
    let Some(dims) = &value.dims else {
        let message = format!("input `{name}` may have any shape: set it with --shape");
        return Err(CommandFailure::message(USAGE, message));
    };
    let set_axes = match kind {
        GearKind::Batch => 0..1,
        // Images have height and width last, in ONNX's axis order.
        GearKind::Size if dims.len() == 4 => 2..4,
        GearKind::Dims => 0..dims.len(),
        GearKind::Size | GearKind::Fixed => 0..0,
    };
    dims.iter().enumerate().map(|(axis, dim)| match dim {
        DeclaredDim::Fixed(n) => Ok(i64::try_from(*n).unwrap_or(i64::MAX)),
        _ if set_axes.contains(&axis) => Ok(OPEN),
        _ => {
            let shape = value.shape_text();
            let message = format!(
                "axis {axis} of input `{name}`, {shape}, is dynamic, and no gear sets it: set the shape with --shape"
            );
            Err(CommandFailure::message(USAGE, message))
        }
    }).collect()
}

fn check(value: &ValueInfo, dims: &[i64]) -> CommandResult {
    let admits = value.dims.as_ref().is_none_or(|declared| {
        let mut pairs = declared.iter().zip(dims);
        let fits = pairs.all(|(declared, &n)| match declared {
            DeclaredDim::Fixed(fixed) => i64::try_from(*fixed) == Ok(n),
            DeclaredDim::Named(_) | DeclaredDim::Unknown => true,
        });
        declared.len() == dims.len() && fits
    });
    if admits {
        return Ok(());
    }
    let (name, shape) = (&value.name, value.shape_text());
    let message = format!("input `{name}` takes shape {shape}, not {dims:?}");
    Err(CommandFailure::message(USAGE, message))
}

/// Dtypes and shapes of the results, for inputs of zeroes and of ones. Dimensions that differ
/// depend on values, and are unknown.
fn results(
    model: &mut dyn LoadedModel,
    signature: &ModelSignature,
    dims: &[Vec<u64>],
    values: &[u64],
) -> CommandResult<Vec<ResultType>> {
    let mut found: Option<Vec<ResultType>> = None;
    let mut error = None;
    for byte in [0, 1] {
        let inputs = signature.inputs.iter().zip(dims);
        let inputs = inputs.map(|(value, dims)| filled(value, dims, byte));
        let inputs = inputs.collect::<CommandResult<Vec<Tensor>>>()?;
        let results = match model.run(&inputs, None) {
            Ok(results) => results,
            // Values with a meaning for the model may fail; one of both suffices.
            Err(reason) => {
                error = Some(reason);
                continue;
            }
        };
        let results = results.iter().map(|tensor| {
            let dims = tensor
                .shape()
                .iter()
                .map(|n| i64::try_from(*n).unwrap_or(i64::MAX))
                .collect();
            (tensor.dtype(), dims)
        });
        let results: Vec<ResultType> = results.collect();
        found = Some(match found {
            None => results,
            Some(before) => before
                .iter()
                .zip(&results)
                .map(|(a, b)| common(a, b))
                .collect(),
        });
    }
    match (found, error) {
        (Some(found), _) => Ok(found),
        (None, Some(error)) => {
            let failure = CommandFailure::from(error);
            let text = format!("the model does not run in gear {values:?}");
            Err(CommandFailure {
                error: failure.error.map(|error| error.context(text)),
                ..failure
            })
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// Common dtype and shape of two results.
fn common(a: &ResultType, b: &ResultType) -> ResultType {
    if a.1.len() != b.1.len() {
        // A shape cannot express an unknown rank; one dynamic dimension comes nearest.
        return (a.0, vec![OPEN]);
    }
    let extents = a.1.iter().zip(&b.1);
    let extents = extents.map(|(a, b)| if a == b { *a } else { OPEN });
    (a.0, extents.collect())
}

/// A tensor of zeroes, or of ones where that is simple: the lowest byte of each element.
fn filled(value: &ValueInfo, dims: &[u64], byte: u8) -> CommandResult<Tensor> {
    let refused = |reason: String| usage(format!("input `{}`: {reason}", value.name));
    let dims: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    let dims = dims.ok_or_else(|| refused("its shape does not fit memory".into()))?;
    let shape = Shape::new(dims).map_err(|error| refused(error.to_string()))?;
    let n_bytes = shape
        .n_bytes(value.dtype)
        .map_err(|error| refused(error.to_string()))?;
    let mut bytes = Vec::new();
    // Sizes come from the command line: without this check, a size beyond memory would end the
    // process instead of being reported.
    let room = bytes.try_reserve_exact(n_bytes);
    room.map_err(|_| refused(format!("no memory for {n_bytes} bytes")))?;
    bytes.resize(n_bytes, 0);
    if let Some(width) = value.dtype.bytes() {
        let one = match value.dtype {
            DType::F32 => 1f32.to_le_bytes().to_vec(),
            DType::F64 => 1f64.to_le_bytes().to_vec(),
            // Other floats become tiny numbers below, which also differ from zero.
            DType::F16 => vec![0x00, 0x3c],
            DType::BF16 => vec![0x80, 0x3f],
            _ => std::iter::once(1)
                .chain(std::iter::repeat_n(0, width - 1))
                .collect(),
        };
        if byte == 1 && one.len() == width {
            bytes
                .chunks_exact_mut(width)
                .for_each(|element| element.copy_from_slice(&one));
        }
    }
    Tensor::from_vec(value.dtype, shape, bytes).map_err(|error| refused(error.to_string()))
}

fn usage(message: String) -> CommandFailure {
    CommandFailure::message(USAGE, message)
}

fn joined<T: ToString>(dims: &[T]) -> String {
    let dims: Vec<String> = dims.iter().map(T::to_string).collect();
    dims.join(",")
}

fn print(gears: &Gears, is_json: bool) -> CommandResult {
    if is_json {
        console::json_out().write_all(gears_json::encode(gears).as_bytes())?;
        return Ok(());
    }
    let mut out = console::out();
    for gear in &gears.gears {
        let inputs = gears.input_dims(gear);
        let inputs = gears
            .inputs
            .iter()
            .zip(inputs)
            .map(|(input, dims)| format!("{} [{}]", input.name, joined(&dims)));
        let outputs = gears.outputs.iter().zip(&gear.outputs);
        let outputs = outputs.map(|(output, dims)| format!("{} [{}]", output.name, joined(dims)));
        let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
        line!(out, "{} -> {}", inputs.join(", "), outputs.join(", "))?;
    }
    for op in &gears.aipp {
        let input = gears.aipp_input(op).and_then(|i| gears.inputs.get(i));
        let name = input.map_or("", |input| &input.name);
        if op.aipp_mode == AippMode::Static {
            line!(out, "{name}: AIPP of {} images", op.input_format.name())?;
        } else {
            let n_bytes = op.max_src_image_size;
            line!(out, "{name}: AIPP of images of up to {n_bytes} bytes")?;
        }
    }
    Ok(())
}
