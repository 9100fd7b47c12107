//! Names of devices' interfaces, and their execution providers.

use std::ffi::CString;

use ort::ep;
use ort::session::builder::SessionBuilder;

use super::{error, native};

/// The ending of the library's names of providers.
const SUFFIX: &str = "ExecutionProvider";
const CPU: &str = "CPUExecutionProvider";
pub(super) const CUDA: &str = "CUDAExecutionProvider";
/// Providers with another name for requests, up to 1.21.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("AzureExecutionProvider", "AZURE"),
    ("OpenVINOExecutionProvider", "OpenVINO"),
    ("QNNExecutionProvider", "QNN"),
    ("SNPEExecutionProvider", "SNPE"),
    ("WebGpuExecutionProvider", "WebGPU"),
    ("XnnpackExecutionProvider", "XNNPACK"),
];

/// Adds the execution providers of these names, the preferred one first.
///
/// A name is `cpu`, `cuda`, `cuda:1`, another provider's, or the library's own, in any case of
/// letters. An unavailable provider is an error.
pub(super) fn append(
    mut builder: SessionBuilder,
    names: &[String],
) -> Result<SessionBuilder, String> {
    // The library adds its CPU provider by itself.
    if names.is_empty() {
        return Ok(builder);
    }
    let available = error::quietly(native::available_providers)?;
    for (i, name) in names.iter().enumerate() {
        let (provider, device) = parse(name, &available)?;
        builder = match provider {
            // It takes every operator, so later providers would get none.
            CPU => {
                if i + 1 < names.len() {
                    return Err(format!(
                        "`{name}` runs every operator, so that `{}` after it would get none; name it last",
                        names[i + 1]
                    ));
                }
                builder
            }
            // Only this one takes a number, for which the wrapper has its own options.
            CUDA => error::quietly(|| {
                let cuda = ep::CUDA::default().with_device_id(device.unwrap_or(0));
                Ok(builder.with_execution_providers([cuda.build().error_on_failure()])?)
            })
            .map_err(|reason| format!("the provider `{name}` cannot be used: {reason}"))?,
            other => by_name(builder, name, other)?,
        };
    }
    Ok(builder)
}

/// The number of the CUDA device that these names put operators on, if it is the preferred place.
pub(super) fn cuda_device(names: &[String]) -> Option<i32> {
    let available = error::quietly(native::available_providers).ok()?;
    let (provider, device) = parse(names.first()?, &available).ok()?;
    (provider == CUDA).then_some(device.unwrap_or(0))
}

/// The library's name of a provider, and the number of a device.
fn parse<'a>(name: &str, available: &'a [String]) -> Result<(&'a str, Option<i32>), String> {
    let (wanted, device) = name
        .split_once(':')
        .map_or((name, None), |(wanted, device)| (wanted, Some(device)));
    let found = available.iter().find(|has| {
        // The suffix `ExecutionProvider` is optional on the command line.
        let short = has.strip_suffix(SUFFIX).unwrap_or(has);
        has.eq_ignore_ascii_case(wanted) || short.eq_ignore_ascii_case(wanted)
    });
    let Some(found) = found else {
        let has: Vec<String> = available
            .iter()
            .map(|name| format!("`{}`", name.strip_suffix(SUFFIX).unwrap_or(name)))
            .collect();
        return Err(format!(
            "the library has no provider `{wanted}`; it has {}",
            has.join(", ").to_lowercase()
        ));
    };
    let Some(device) = device else {
        return Ok((found, None));
    };
    if found != CUDA {
        return Err(format!(
            "provider `{name}`: only `cuda` takes the number of a device"
        ));
    }
    match device.parse::<i32>() {
        Ok(number) if number >= 0 => Ok((found, Some(number))),
        _ => Err(format!(
            "provider `{name}`: `{device}` is no number of a device, such as `cuda:0`"
        )),
    }
}

fn by_name(
    mut builder: SessionBuilder,
    name: &str,
    provider: &str,
) -> Result<SessionBuilder, String> {
    let short = SHORT_NAMES.iter().find(|(long, _)| *long == provider);
    let asked_for = short.map_or(provider, |(_, short)| short);
    let result = error::quietly(|| {
        let asked_for = CString::new(asked_for)?;
        native::append_provider(&mut builder, &asked_for)
    });
    result.map_err(|reason| format!("the provider `{name}` cannot be used: {reason}"))?;
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_against_what_the_library_has() {
        let available = [CUDA, "XnnpackExecutionProvider", CPU].map(str::to_owned);
        let check = |name: &str, expected: Result<(&str, Option<i32>), &str>| {
            assert_eq!(
                parse(name, &available),
                expected.map_err(str::to_owned),
                "{name}"
            );
        };
        check("cpu", Ok((CPU, None)));
        check("CPUExecutionProvider", Ok((CPU, None)));
        check("cuda", Ok((CUDA, None)));
        check("CUDA:1", Ok((CUDA, Some(1))));
        check("cudaexecutionprovider:0", Ok((CUDA, Some(0))));
        check("xnnpack", Ok(("XnnpackExecutionProvider", None)));
        check(
            "tensorrt",
            Err("the library has no provider `tensorrt`; it has `cuda`, `xnnpack`, `cpu`"),
        );
        check(
            "",
            Err("the library has no provider ``; it has `cuda`, `xnnpack`, `cpu`"),
        );
        check(
            "cpu:1",
            Err("provider `cpu:1`: only `cuda` takes the number of a device"),
        );
        check(
            "cuda:-1",
            Err("provider `cuda:-1`: `-1` is no number of a device, such as `cuda:0`"),
        );
    }
}
