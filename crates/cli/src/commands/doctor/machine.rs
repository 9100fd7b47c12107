//! Devices, disk, and limits of the process.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use opscope_store::decimal::is_digits;
use opscope_store::run_file::umask;
use opscope_store::{free_memory_bytes, memory_bytes, regular_file, space};
use serde_json::{Value, json};

use super::Check;
use crate::format;

/// Less room than this ends the dump of a small network.
const BYTES_MIN: u64 = 1_000_000_000;
/// A dump and a comparison keep about this many files open.
const FILES_MIN: u64 = 256;
/// NVIDIA's driver lists its devices here.
const NVIDIA: &str = "/proc/driver/nvidia/gpus";
/// A description of a device has a few hundred bytes.
const INFORMATION_BYTES_MAX: u64 = 65_536;

pub(super) fn check() -> Vec<Check> {
    vec![
        devices(Path::new(NVIDIA), Path::new("/dev")),
        disk(
            "disk",
            Path::new("."),
            "dump to another disk with --out DIR",
        ),
        temporary(&std::env::temp_dir()),
        open_files(),
        file_size(),
        memory(),
        processors(),
        permissions(umask()),
    ]
}

fn names_in(dir: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// GPUs and NPUs that the system shows.
fn devices(nvidia: &Path, dev: &Path) -> Check {
    let information = names_in(nvidia).into_iter().filter_map(|name| {
        regular_file::read(
            &nvidia.join(name).join("information"),
            INFORMATION_BYTES_MAX,
        )
        .ok()
    });
    let models = information.filter_map(|text| {
        let text = String::from_utf8_lossy(&text);
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(model.trim().to_owned())
    });
    let mut found: Vec<String> = models.collect();
    // Inside containers, device files may be all there is.
    let has_models = !found.is_empty();
    for name in names_in(dev) {
        let name = name.to_string_lossy();
        let n_gpu = name.strip_prefix("nvidia").filter(|_| !has_models);
        if name
            .strip_prefix("davinci")
            .or(n_gpu)
            .is_some_and(is_digits)
        {
            found.push(format!("/dev/{name}"));
        }
    }
    let values = json!({ "devices": found });
    if found.is_empty() {
        // Absent on most machines, and nothing to install.
        return Check::ok("gpu", "none; models run on the processor", values);
    }
    let detail = format!("{}; ONNX Runtime uses it with --provider", found.join(", "));
    Check::ok("gpu", detail, values)
}

fn disk(name: &'static str, path: &Path, advice: &str) -> Check {
    let shown = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match space(path) {
        Ok(free) => {
            let detail = format!(
                "{} free in `{}`",
                format::bytes(free.n_bytes_free),
                shown.display()
            );
            let values = json!({ "path": shown, "bytes_free": free.n_bytes_free });
            let check = Check::ok(name, detail, values);
            if free.n_bytes_free < BYTES_MIN {
                check.problem(advice)
            } else {
                check
            }
        }
        Err(error) => Check::ok(name, error.to_string(), json!({})).problem(advice),
    }
}

/// The directory of temporary files, which must be writable.
fn temporary(dir: &Path) -> Check {
    let advice = "set TMPDIR to a writable directory with room";
    let written = tempfile::tempfile_in(dir).and_then(|mut file| file.write_all(b"opscope"));
    match written {
        Ok(()) => disk("temporary files", dir, advice),
        Err(error) => {
            let detail = format!("`{}` is not writable: {error}", dir.display());
            Check::ok("temporary files", detail, json!({ "path": dir })).problem(advice)
        }
    }
}

fn open_files() -> Check {
    let limit = limit(Resource::RLIMIT_NOFILE);
    let detail = match limit {
        Some(n) => format!("at most {n}"),
        None => "no limit".to_owned(),
    };
    let check = Check::ok("open files", detail, json!({ "maximum": limit }));
    match limit {
        Some(n) if n < FILES_MIN => check.problem("raise it in this shell: ulimit -n 4096"),
        _ => check,
    }
}

fn file_size() -> Check {
    match limit(Resource::RLIMIT_FSIZE) {
        None => Check::ok("file size", "no limit", json!({ "maximum": Value::Null })),
        Some(n) => {
            let detail = format!("at most {}", format::bytes(n));
            let check = Check::ok("file size", detail, json!({ "maximum": n }));
            check.problem("larger files end a dump; raise it in this shell: ulimit -f unlimited")
        }
    }
}

/// The limit in force; `None` if there is none.
fn limit(resource: Resource) -> Option<u64> {
    let (now, _) = getrlimit(resource).ok()?;
    (now != RLIM_INFINITY).then_some(now)
}

fn memory() -> Check {
    let total = Some(memory_bytes()).filter(|n| *n != u64::MAX);
    let free = free_memory_bytes();
    let [free_text, total_text] =
        [free, total].map(|n| n.map_or_else(|| "unknown".to_owned(), format::bytes));
    let detail = format!("{free_text} free of {total_text}");
    Check::ok(
        "memory",
        detail,
        json!({ "bytes_free": free, "bytes": total }),
    )
}

fn processors() -> Check {
    let n = opscope_analysis::default_jobs();
    Check::ok("processors", n.to_string(), json!({ "count": n }))
}

fn permissions(umask: Option<u32>) -> Check {
    let Some(umask) = umask else {
        return Check::ok("umask", "unknown", json!({}));
    };
    let values = json!({ "umask": format!("{umask:03o}") });
    if umask & 0o700 == 0 {
        let detail = format!("{umask:03o}; dumps get modes 700 and 600 (--dir-mode, --file-mode)");
        return Check::ok("umask", detail, values);
    }
    let detail = format!("{umask:03o} removes the owner's permissions from new files");
    Check::ok("umask", detail, values).problem("in this shell: umask 077")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_of_drivers() {
        let dir = tempfile::tempdir().unwrap();
        let [nvidia, dev] = ["gpus", "dev"].map(|name| dir.path().join(name));
        fs::create_dir(&dev).unwrap();
        for name in [
            "davinci0",
            "davinci_manager",
            "nvidia0",
            "nvidiactl",
            "null",
        ] {
            fs::write(dev.join(name), "").unwrap();
        }
        let found = |nvidia: &Path| devices(nvidia, &dev).values["devices"].clone();
        assert_eq!(found(&nvidia), json!(["/dev/davinci0", "/dev/nvidia0"]));
        let gpu = nvidia.join("0000:01:00.0");
        fs::create_dir_all(&gpu).unwrap();
        fs::write(gpu.join("information"), "Model: \t\t NVIDIA X\nIRQ: 1\n").unwrap();
        assert_eq!(found(&nvidia), json!(["NVIDIA X", "/dev/davinci0"]));
        assert_eq!(devices(&gpu, &gpu).values["devices"], json!([]));
    }

    #[test]
    fn a_place_that_is_not_writable_and_a_umask_are_problems() {
        let absent = temporary(Path::new("/nowhere/at/all"));
        assert_eq!(absent.state.name(), "problem", "{absent:?}");
        for (umask, state) in [(0o022, "ok"), (0o077, "ok"), (0o177, "problem")] {
            assert_eq!(permissions(Some(umask)).state.name(), state);
        }
    }
}
