//! Sources of a model's inputs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use opscope_diff::inputs::default_shapes;
use opscope_engine::input::{RandomNumbers, arrange, check_shape, find, resolve_shape, unknown};
use opscope_engine::{DeclaredDim, InputError, ModelSignature, ValueInfo};
use opscope_store::file_format::npy::{self, NpyHeader};
use opscope_store::file_format::{npy_zst, npz};
use opscope_store::{check_memory, regular_file};
use opscope_tensor::{DType, Shape, Tensor};

use crate::arguments::{NamedFile, NamedShape, named_file, named_shape};
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE, example_shape};

/// How far a raw file is read beyond the expected size, to report its actual size.
const RAW_BYTES_MORE: u64 = 1 << 20;

type Named = BTreeMap<String, Tensor>;

/// Sources of a model's inputs.
#[derive(clap::Args)]
pub(crate) struct InputArguments {
    /// A model input from a `.npy` file, or raw little-endian elements from a `.bin` file
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file, help_heading = "Inputs")]
    input: Vec<NamedFile>,
    /// Model inputs from an archive, or from a directory with one archive, array or subdirectory
    /// for each step
    #[arg(
        long,
        value_name = "FILE.npz|DIR",
        conflicts_with = "input",
        help_heading = "Inputs"
    )]
    inputs: Option<PathBuf>,
    /// Shape of an input with dynamic dimensions, or from a `.bin` file
    #[arg(long, value_name = "NAME:1,3,224,224", value_parser = named_shape, help_heading = "Inputs")]
    shape: Vec<NamedShape>,
    /// Use random values for missing inputs: floats in [0, 1), integers 0 or 1
    #[arg(long, value_name = "N", help_heading = "Inputs")]
    seed: Option<u64>,
}

impl InputArguments {
    /// Whether no inputs are given and no random ones requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_empty() && self.inputs.is_none() && self.seed.is_none()
    }
}

/// Inputs for every step, created when needed.
pub(crate) struct InputSource {
    signature: ModelSignature,
    shapes: BTreeMap<String, Shape>,
    seed: Option<u64>,
    sets: Vec<InputSet>,
}

/// The given inputs of one step.
enum InputSet {
    /// Already read.
    Given(Named),
    /// An archive.
    Archive(PathBuf),
    /// An array for each named input.
    Arrays(Vec<(String, PathBuf)>),
}

impl InputSource {
    /// Checks the options; files of later steps are opened at their step. A dry run uses random
    /// inputs by default.
    pub(crate) fn new(
        arguments: &InputArguments,
        is_dry_run: bool,
        signature: &ModelSignature,
    ) -> CommandResult<InputSource> {
        let mut shapes = BTreeMap::new();
        for option in &arguments.shape {
            let value = find(signature, &option.name)
                .ok_or_else(|| unknown_shape(signature, &option.name))?;
            // The result equals `shape`. Shapes that the model refuses are reported now rather than
            // at the step that uses them.
            resolve_shape(value, Some(&option.shape))?;
            shapes.insert(option.name.clone(), option.shape.clone());
        }
        let mut source = InputSource {
            signature: signature.clone(),
            shapes,
            seed: if is_dry_run && arguments.is_empty() {
                Some(0)
            } else {
                arguments.seed
            },
            sets: Vec::new(),
        };
        source.sets = match &arguments.inputs {
            Some(path) => source.sets_of(path)?,
            None => {
                let mut given = Named::new();
                for option in &arguments.input {
                    // These inputs are the same at every step, so they are read once. Clones share
                    // the elements.
                    let tensor = source.read(&option.name, &option.path)?;
                    if given.insert(option.name.clone(), tensor).is_some() {
                        let message = format!("input `{}` is given twice", option.name);
                        return Err(CommandFailure::message(USAGE, message));
                    }
                }
                vec![InputSet::Given(given)]
            }
        };
        Ok(source)
    }

    /// The random inputs that the user did not ask for, or whose shape is a default.
    pub(crate) fn random_note(&self, arguments: &InputArguments) -> CommandResult<Option<String>> {
        if self.seed.is_none() {
            return Ok(None);
        }
        let mut made_up = Vec::new();
        let given = self.given(0)?;
        let defaults = self.default_shapes(&given);
        for value in &self.signature.inputs {
            if given.contains_key(&value.name) {
                continue;
            }
            let is_chosen =
                defaults.contains_key(&value.name) && !self.shapes.contains_key(&value.name);
            if is_chosen || arguments.is_empty() {
                let shape = self.random_shape(value, &defaults)?;
                let declared = if is_chosen {
                    format!(" for {}", value.shape_text())
                } else {
                    String::new()
                };
                made_up.push(format!(
                    "`{}` {} {shape}{declared}",
                    value.name, value.dtype
                ));
            }
        }
        Ok((!made_up.is_empty()).then(|| made_up.join(", ")))
    }

    /// Shapes of random values for inputs with open dimensions.
    fn default_shapes(&self, given: &Named) -> BTreeMap<String, Shape> {
        let mut known = self.shapes.clone();
        let shapes = given
            .iter()
            .map(|(name, tensor)| (name.clone(), tensor.shape().clone()));
        known.extend(shapes);
        default_shapes(&self.signature, &known)
    }

    /// The shape of a random input.
    fn random_shape(
        &self,
        value: &ValueInfo,
        defaults: &BTreeMap<String, Shape>,
    ) -> Result<Shape, InputError> {
        let shape = self.shapes.get(&value.name);
        resolve_shape(value, shape.or(defaults.get(&value.name)))
    }

    /// Number of sets of inputs; steps cycle through them.
    pub(crate) fn n_sets(&self) -> u64 {
        self.sets.len() as u64
    }

    /// The inputs of a step in the model's order, checked.
    pub(crate) fn step(&self, step: u64) -> CommandResult<Vec<Tensor>> {
        let index = usize::try_from(step % self.n_sets()).unwrap_or(0);
        let mut given = self.given(index)?;
        if let Some(seed) = self.seed {
            let defaults = self.default_shapes(&given);
            // Each step has its own random numbers, whichever inputs are given.
            let mut random =
                // The factor is odd, so no two steps begin with the same state.
                RandomNumbers::new(seed.wrapping_add(step.wrapping_mul(0x5851_f42d_4c95_7f2d)));
            for value in &self.signature.inputs {
                if !given.contains_key(&value.name) {
                    let shape = self.random_shape(value, &defaults)?;
                    given.insert(value.name.clone(), random.tensor(value, shape)?);
                }
            }
        }
        let arranged = arrange(&self.signature, given);
        arranged.map_err(|error| match self.sets[index].place() {
            Some(path) => CommandFailure::from(error).at(path),
            None => error.into(),
        })
    }

    /// The inputs of a set, read from their files.
    fn given(&self, set: usize) -> CommandResult<Named> {
        match &self.sets[set] {
            InputSet::Given(given) => Ok(given.clone()),
            InputSet::Archive(path) => self.read_archive(path),
            InputSet::Arrays(arrays) => arrays
                .iter()
                .map(|(name, path)| Ok((name.clone(), self.read(name, path)?)))
                .collect(),
        }
    }

    /// The sets in an archive or a directory.
    fn sets_of(&self, path: &Path) -> CommandResult<Vec<InputSet>> {
        if !path.is_dir() {
            if is_array(path) || has_suffix(path, "bin") {
                let message = format!("`{}` is a single array, not an archive", path.display());
                let hint = "pass one input by `--input NAME=FILE`";
                return Err(CommandFailure::message(USAGE, message).with_hint(hint));
            }
            return Ok(vec![InputSet::Archive(path.to_owned())]);
        }
        let entries = entries(path)?;
        // If the directory has sets for steps, its other files are not inputs.
        if entries.iter().any(|entry| is_set(entry)) {
            self.report_unread(path, &entries);
            return entries
                .into_iter()
                .filter(|entry| is_set(entry))
                .map(|entry| self.set_of(entry))
                .collect();
        }
        let arrays: Vec<PathBuf> = entries
            .into_iter()
            .filter(|entry| is_array(entry))
            .collect();
        match (
            arrays.is_empty(),
            arrays
                .iter()
                .all(|path| find(&self.signature, &stem(path)).is_some()),
            &self.signature.inputs[..],
        ) {
            (true, _, _) => {
                let message = format!("`{}` holds no `.npz` or `.npy` files", path.display());
                Err(CommandFailure::message(USAGE, message))
            }
            (_, true, _) => Ok(vec![named_arrays(arrays)?]),
            // One array for each step of a model with one input.
            (_, _, [only]) => Ok(arrays
                .into_iter()
                .map(|path| InputSet::Arrays(vec![(only.name.clone(), path)]))
                .collect()),
            _ => {
                let message = format!(
                    "the arrays in `{}` are not named after the model's inputs",
                    path.display()
                );
                let hint = "use one `.npz` file or subdirectory for each step";
                Err(CommandFailure::message(USAGE, message).with_hint(hint))
            }
        }
    }

    fn set_of(&self, entry: PathBuf) -> CommandResult<InputSet> {
        if !entry.is_dir() {
            return Ok(InputSet::Archive(entry));
        }
        let arrays = entries(&entry)?.into_iter().filter(|path| is_array(path));
        let arrays: Vec<PathBuf> = arrays.collect();
        if arrays.is_empty() {
            let message = format!("`{}` holds no `.npy` files", entry.display());
            let hint = "each subdirectory of `--inputs` is a step; move others elsewhere";
            return Err(CommandFailure::message(USAGE, message).with_hint(hint));
        }
        named_arrays(arrays)
    }

    /// Names arrays of inputs next to the sets of steps.
    fn report_unread(&self, dir: &Path, entries: &[PathBuf]) {
        let arrays = entries
            .iter()
            .filter(|entry| is_array(entry))
            .map(|entry| stem(entry));
        let unread = arrays.filter(|name| find(&self.signature, name).is_some());
        let unread: Vec<String> = unread.map(|name| format!("`{name}`")).collect();
        if !unread.is_empty() {
            report!(
                "opscope: warning: `{}` has archives or subdirectories, which are its steps; its \
                 arrays {} are not read",
                dir.display(),
                unread.join(", ")
            );
        }
    }

    fn read_archive(&self, path: &Path) -> CommandResult<Named> {
        let mut archive = npz::Archive::open(path)?;
        let names = archive.names().to_vec();
        // Archives of recorded samples name inputs `in.NAME`, next to expected outputs.
        let is_sample = names
            .iter()
            .any(|name| find(&self.signature, name).is_none() && name.starts_with("in."));
        let mut given = Named::new();
        for array in names {
            let name = if is_sample {
                array.strip_prefix("in.")
            } else {
                Some(array.as_str())
            };
            let Some(name) = name else {
                continue;
            };
            // Checks the shape before the elements: a small archive can declare any number of them.
            let value = find(&self.signature, name);
            let value = value.ok_or_else(|| unknown(&self.signature, name))?;
            check_header(value, &archive.header(&array)?)?;
            let tensor = archive.read(&array, Some(value.dtype))?;
            given.insert(name.to_owned(), tensor);
        }
        Ok(given)
    }

    fn read(&self, name: &str, path: &Path) -> CommandResult<Tensor> {
        let value = find(&self.signature, name).ok_or_else(|| unknown(&self.signature, name))?;
        let wanted = self.shapes.get(name);
        if has_suffix(path, "bin") {
            return read_raw(value, wanted, path);
        }
        if !is_array(path) {
            let message = format!("`{}` is neither a `.npy` nor a `.bin` file", path.display());
            let hint = if has_suffix(path, "npz") || path.is_dir() {
                "pass all inputs in an archive or a directory by `--inputs`"
            } else {
                "a compressed array is a `.npy.zst` file"
            };
            return Err(CommandFailure::message(USAGE, message).with_hint(hint));
        }
        let header = npy_zst::read_header(path)?;
        if let Some(wanted) = wanted.filter(|wanted| **wanted != header.shape) {
            let message = format!(
                "`--shape` is {wanted} for input `{name}`, but `{}` has {}",
                path.display(),
                header.shape
            );
            return Err(CommandFailure::message(USAGE, message));
        }
        check_header(value, &header)?;
        Ok(npy_zst::read_file_as(path, Some(value.dtype))?)
    }
}

impl InputSet {
    /// The file or directory that it comes from.
    fn place(&self) -> Option<&Path> {
        match self {
            InputSet::Given(_) => None,
            InputSet::Archive(path) => Some(path),
            InputSet::Arrays(arrays) => arrays.first()?.1.parent(),
        }
    }
}

/// The error for a shape of something that is no input.
fn unknown_shape(signature: &ModelSignature, name: &str) -> CommandFailure {
    let failure = CommandFailure::from(unknown(signature, name));
    let with_dim = signature.inputs.iter().find(|value| {
        let mut dims = value.dims.iter().flatten();
        dims.any(|dim| matches!(dim, DeclaredDim::Named(dim) if dim == name))
    });
    match with_dim {
        Some(value) => {
            let (input, shape) = (&value.name, example_shape(&value.shape_text()));
            failure.with_hint(format!(
                "`{name}` is a dimension: set the shape of an input that has it, such as \
                 `--shape {input}:{shape}`"
            ))
        }
        None => failure,
    }
}

/// Whether an array matches the model's declaration, before its elements are read. A dtype that
/// numpy lacks is known only from the elements.
fn check_header(value: &ValueInfo, header: &NpyHeader) -> Result<(), InputError> {
    let is_known = npy::descr(value.dtype).is_some() && header.dtype != DType::Undefined;
    if is_known && header.dtype != value.dtype {
        return Err(InputError::Dtype {
            name: value.name.clone(),
            expected: value.dtype,
            found: header.dtype,
        });
    }
    check_shape(value, &header.shape)
}

/// Raw elements; their shape comes from the option or the model.
fn read_raw(value: &ValueInfo, wanted: Option<&Shape>, path: &Path) -> CommandResult<Tensor> {
    let shape = resolve_shape(value, wanted)?;
    // A product beyond `usize` passes the file size check, but the tensor refuses it below.
    let n_bytes = shape.n_bytes(value.dtype).unwrap_or(usize::MAX) as u64;
    let unreadable = |error: io::Error| {
        let error = anyhow!(error).context(format!("cannot read `{}`", path.display()));
        CommandFailure::new(UNREADABLE, error)
    };
    let n_found = regular_file::check(path).map_err(unreadable)?.len();
    let (name, dtype) = (value.name.clone(), value.dtype);
    // The tensor reports files that are only a little longer.
    if n_found > n_bytes.saturating_add(RAW_BYTES_MORE) {
        let message = format!(
            "input `{name}`: expected {n_bytes} bytes of {dtype} {shape}, `{}` has {n_found}",
            path.display()
        );
        return Err(CommandFailure::message(USAGE, message));
    }
    // A sparse file takes no disk space but may exceed memory, so reading it could end the process.
    check_memory(n_found).map_err(unreadable)?;
    let bytes = regular_file::read(path, n_found).map_err(unreadable)?;
    Tensor::from_vec(value.dtype, shape, bytes)
        .map_err(|source| InputError::Size { name, source }.into())
}

fn named_arrays(paths: Vec<PathBuf>) -> CommandResult<InputSet> {
    let arrays: Vec<_> = paths.into_iter().map(|path| (stem(&path), path)).collect();
    // Sorted by name, so a plain and a compressed array of one name are neighbours.
    if let Some([(name, a), (_, b)]) = arrays.array_windows().find(|[a, b]| a.0 == b.0) {
        let (a, b) = (a.display(), b.display());
        let message = format!("input `{name}` is given twice: `{a}` and `{b}`");
        return Err(CommandFailure::message(USAGE, message));
    }
    Ok(InputSet::Arrays(arrays))
}

/// Lists the paths in a directory, numbers in numeric order.
fn entries(dir: &Path) -> CommandResult<Vec<PathBuf>> {
    let read = std::fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = read.map_err(|error| {
        CommandFailure::new(
            UNREADABLE,
            anyhow!(error).context(format!("cannot list `{}`", dir.display())),
        )
    })?;
    // A file manager or a notebook may leave hidden files and directories.
    let visible = entries
        .into_iter()
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut paths: Vec<PathBuf> = visible.map(|entry| entry.path()).collect();
    paths.sort_by_cached_key(|path| {
        let stem = stem(path);
        // Programs number their samples without leading zeros, so `10` must follow `9`. Other names
        // follow alphabetically.
        (stem.parse::<u64>().unwrap_or(u64::MAX), stem)
    });
    Ok(paths)
}

fn is_set(path: &Path) -> bool {
    path.is_dir() || has_suffix(path, "npz")
}

/// The name of an array without its suffix.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match npy_zst::split_name(&name) {
        // For `x.npy.zst` the standard library would return `x.npy`.
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    }
}

fn is_array(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    npy_zst::split_name(&name).is_some_and(|(stem, _)| !stem.is_empty())
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == suffix)
}
