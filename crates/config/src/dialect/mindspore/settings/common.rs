//! `common_dump_settings`.

use std::collections::BTreeSet;

use super::debug::read_overflow_number;
use super::reader::{DeviceBackend, SettingsReader};
use super::values::MindSporeSettings;
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::dialect::mindspore::dump::FileFormat;
use crate::dialect::mindspore::section::{ConfigSection, SectionItem};
use crate::dialect::mindspore::{iteration, kernels};
use crate::json::JsonValue;

/// The keys.
pub(crate) const KEYS: [&str; 13] = [
    "op_debug_mode",
    "dump_mode",
    "path",
    "net_name",
    "iteration",
    "saved_data",
    "input_output",
    "kernels",
    "support_device",
    "statistic_category",
    "file_format",
    "overflow_number",
    "initial_iteration",
];

/// `dump_mode`: operators that the model marks.
const BY_SET_DUMP: u32 = 2;
/// `dump_mode`: operators in `kernels`.
const BY_KERNELS: u32 = 1;
impl SettingsReader<'_> {
    /// Reads the section except `statistic_category`.
    pub(super) fn common(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        // All required keys are looked up before any value is checked: MindSpore reports a missing
        // key first.
        let dump_mode = section.required("dump_mode", findings)?;
        let net_name = section.required("net_name", findings)?;
        let iteration = section.required("iteration", findings)?;
        let input_output = section.required("input_output", findings)?;
        let kernels = section.required("kernels", findings)?;
        let devices = section.required("support_device", findings)?;
        let op_debug_mode = if settings.is_e2e_enabled {
            section.item("op_debug_mode")
        } else {
            Some(section.required("op_debug_mode", findings)?)
        };

        self.dump_mode(&dump_mode, settings, findings)?;
        self.path(section, settings, findings)?;
        read_net_name(&net_name, settings, findings)?;
        read_iteration(&iteration, settings, findings)?;
        read_input_output(&input_output, settings, findings)?;
        // The type is checked in every mode, the entries in one only.
        kernels.array(findings)?;
        if settings.dump_mode == BY_KERNELS {
            settings.kernels = kernels::read(&kernels, findings)?;
        }
        read_devices(&devices, settings, findings)?;
        if let Some(item) = op_debug_mode {
            self.op_debug_mode(&item, section, settings, findings)?;
        }
        self.file_format(section, settings, findings)?;
        read_overflow_number(section, settings, findings)?;
        self.saved_data(section, settings, findings)?;
        if let Some(item) = section.item("initial_iteration") {
            settings.initial_iteration = item.unsigned(findings)?;
        }
        Ok(())
    }

    fn dump_mode(
        &self,
        item: &SectionItem<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let mode = item.unsigned(findings)?;
        settings.dump_mode = mode;
        if mode > BY_SET_DUMP {
            let text =
                format!("Dump config parse failed, dump_mode should be 0, 1 or 2, but got {mode}");
            return Err(findings.refuse(item.unexpected(&mode.to_string(), "0/1/2", text)));
        }
        // Only Ascend has the graph that knows the model's marked operators.
        if mode != BY_SET_DUMP || self.backend == DeviceBackend::Ascend {
            return Ok(());
        }
        let backend = self.backend.name();
        let text =
            "Set dump is only supported in Ascend async dump. Please set dump_mode to 0 or 1.";
        if self.is_lenient {
            let message = format!("MindSpore refuses `2` on a {backend}; here it is supported");
            findings.warn(item.vendor_warning(message, text.to_owned()));
            return Ok(());
        }
        let mut issue = item.error(
            format!("found `2`, which MindSpore supports only on Ascend, not on a {backend}"),
            text.to_owned(),
        );
        issue.found = Some("2".to_owned());
        issue.expected = Some("0/1".to_owned());
        issue.hint = Some("Opscope's dumps support it on every target".to_owned());
        Err(findings.refuse(issue))
    }

    fn file_format(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let Some(item) = section.item("file_format") else {
            return Ok(());
        };
        if settings.is_e2e_enabled {
            // MindSpore ignores it together with `e2e_dump_settings`, so no value is an error.
            let written = match &item.node.value {
                JsonValue::String(text) if self.is_graph => format_of(text),
                _ => None,
            };
            match written {
                Some(format) => settings.graph_file_format = format,
                None if self.is_graph => {
                    findings.warn(item.warning("it is neither `npy` nor `bin` and has no effect"));
                }
                None => {
                    let message = "it has no effect: it applies to dumps of whole graphs on Ascend";
                    findings.warn(item.warning(message));
                }
            }
            return Ok(());
        }
        let name = item.text(findings)?;
        let Some(format) = format_of(name) else {
            let text = format!(
                "Dump Json Parse Failed. 'file_format' should be either 'npy' or 'bin', but got: \
                 {name}"
            );
            return Err(findings.refuse(item.unexpected(name, "bin/npy", text)));
        };
        settings.file_format = format;
        settings.graph_file_format = format;
        Ok(())
    }

    fn path(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let item = section.item("path");
        let written = match &item {
            Some(item) => item.text(findings)?,
            None => "",
        };
        // A missing path is reported at the section.
        let item = item.unwrap_or_else(|| section.absent("path"));
        let variable = self.env.diagnostic_data_path.as_deref().unwrap_or_default();
        settings.path = match (written, variable) {
            ("", "") => {
                let text = "Dump path is empty. Please set it in dump json file or environment \
                            variable `MS_DIAGNOSTIC_DATA_PATH`.";
                let message =
                    "the path is missing, and `MS_DIAGNOSTIC_DATA_PATH` is not set either";
                return Err(findings.refuse(item.error(message, text.to_owned())));
            }
            ("", variable) => format!("{variable}/debug_dump"),
            (written, _) => written.to_owned(),
        };
        let path = settings.path.as_str();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
        if !path.bytes().all(is_plain) {
            let text = format!(
                "Dump path only support alphabets, digit or {{'-', '_', '/'}}, but got:{path}"
            );
            if let Some(home) = self
                .home(path)
                .filter(|_| path.bytes().skip(1).all(is_plain))
            {
                let message = format!("MindSpore refuses `{path}`; here it is `{home}`");
                findings.warn(item.vendor_warning(message, text));
                settings.path = home;
                return Ok(());
            }
            let expected = "letters, digits, `-`, `_` and `/` only";
            return Err(findings.refuse(item.unexpected(path, expected, text)));
        }
        if !path.starts_with('/') {
            let text = "Dump path only support absolute path and should start with '/'".to_owned();
            return Err(findings.refuse(item.unexpected(path, "an absolute path", text)));
        }
        Ok(())
    }
}

impl SettingsReader<'_> {
    /// The expansion of `$HOME` or `~` at the beginning of a path, in Opscope's interpretation.
    fn home(&self, path: &str) -> Option<String> {
        let home = self.env.expand_home(path).filter(|_| self.is_lenient)?;
        Some(self.env.absolute(home).display().to_string())
    }
}

fn read_net_name(
    item: &SectionItem<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let name = item.text(findings)?;
    if name.is_empty()
        || !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    {
        let text =
            format!("net_name only supports alphabetic, digit, or {{'-', '_'}}, but got: {name}");
        let expected = "letters, digits, `-` and `_`";
        return Err(findings.refuse(item.unexpected(name, expected, text)));
    }
    name.clone_into(&mut settings.net_name);
    Ok(())
}

fn read_iteration(
    item: &SectionItem<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let written = item.text(findings)?;
    if !iteration::is_accepted(written) {
        let text = format!(
            "iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {written}"
        );
        let expected = "`all`, or numbers and ranges such as `0|5-8|100-120`, without blanks";
        return Err(findings.refuse(item.unexpected(written, expected, text)));
    }
    iteration::warn_never(item, written, findings);
    written.clone_into(&mut settings.iteration);
    Ok(())
}

fn read_input_output(
    item: &SectionItem<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    settings.input_output = item.unsigned(findings)?;
    if settings.input_output > 2 {
        let text = "Dump Json Parse Failed. input_output should be 0, 1, 2".to_owned();
        let found = settings.input_output.to_string();
        return Err(findings.refuse(item.unexpected(&found, "0/1/2", text)));
    }
    Ok(())
}

fn read_devices(
    item: &SectionItem<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let mut devices = BTreeSet::new();
    for (i, node) in item.array(findings)?.iter().enumerate() {
        let entry = item.element(i, node);
        let device = match &node.value {
            JsonValue::Number(text) => device_number(text),
            JsonValue::Bool(value) => u32::from(*value),
            _ => return Err(findings.refuse(entry.wrong_element("number"))),
        };
        // A fraction or a large number is truncated to a device that is rarely the intended one.
        let is_whole =
            matches!(&node.value, JsonValue::Number(text) if text.parse::<u32>() == Ok(device));
        if !is_whole {
            findings.warn(entry.warning(format!("it is read as device {device}")));
        }
        if !devices.insert(device) {
            findings.warn(entry.vendor_warning(
                format!("device {device} appears twice"),
                format!("Duplicate support device:{device}"),
            ));
        }
    }
    settings.devices = devices.into_iter().collect();
    Ok(())
}

/// A number as C++ converts it: truncated to an integer, of which the low 32 bits are kept.
fn device_number(text: &str) -> u32 {
    let bits = if let Ok(whole) = text.parse::<u64>() {
        whole
    } else if let Ok(whole) = text.parse::<i64>() {
        // A negative number wraps around, like a conversion to `uint32_t`.
        whole.cast_unsigned()
    } else {
        let value: f64 = text.parse().unwrap_or(0.0);
        // Larger numbers convert to one whose low bits are 0.
        match value.abs() < 9.2e18 {
            #[expect(clippy::cast_possible_truncation, reason = "the fraction is truncated")]
            true => (value as i64).cast_unsigned(),
            false => 0,
        }
    };
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// The format with this name.
fn format_of(name: &str) -> Option<FileFormat> {
    match name {
        "bin" => Some(FileFormat::Bin),
        "npy" => Some(FileFormat::Npy),
        _ => None,
    }
}
