//! `dump_path`, and the alternative directories of a dump.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::judge::RuleAuthority;
use super::object::{ConfigRefusal, IssueCollector, shown};
use super::raw::{RawDump, RawText};
use crate::environment::home_prefix;
use crate::report::RefusalReason;
use crate::{ConfigEnvironment, ConfigIssue, Severity};

/// Maximum length of the value, in bytes.
const BYTES_MAX: usize = 512;
/// Characters allowed in a path, in addition to ASCII letters and digits.
const CHARACTERS: &str = "-=[];\\,./!@#$%^&*()_+{}:?";

/// Checks the value and makes it absolute. With the form `ip:path` the directory need not exist.
pub(super) fn check(
    raw: &RawDump<'_>,
    env: &ConfigEnvironment,
    judge: RuleAuthority,
    findings: &mut IssueCollector,
) -> Result<PathBuf, ConfigRefusal> {
    let expected = "a directory that exists";
    let Some(text) = &raw.path else {
        return Err(findings.refuse(raw.at.missing("dump_path", expected)));
    };
    if text.is_empty() {
        return Err(findings.refuse(text.at.empty(expected)));
    }
    let value = text.value;
    if value.len() > BYTES_MAX {
        let n = value.len();
        let message = format!("found {n} bytes, at most {BYTES_MAX} are allowed");
        let issue = text.at.unusable(value, RefusalReason::PathTooLong, message);
        return Err(findings.refuse(issue));
    }
    // The form with an address is for a device that sends its files over the network. No directory
    // on this machine is checked.
    if let Some(path) = after_address(value) {
        if !has_allowed_characters(path) {
            let message = format!(
                "`{}` contains characters other than letters, digits and {CHARACTERS}",
                shown(path)
            );
            let issue = text
                .at
                .unusable(path, RefusalReason::InvalidCharacters, message);
            return Err(findings.refuse(issue));
        }
        return Ok(below_current_dir(path, env));
    }
    existing(text, env, judge, findings)
}

/// Notes the expansion of `$HOME` or `~` where the path is not checked.
pub(super) fn note_home(
    raw: Option<&RawText<'_>>,
    env: &ConfigEnvironment,
    findings: &mut IssueCollector,
) {
    if let Some(text) = raw
        && after_address(text.value).is_none()
        && let Some(path) = env.expand_home(text.value)
    {
        findings.warn(home_note(text, &path));
    }
}

/// Directories for dumps of failing operators, in order of preference. Nothing is checked: the
/// first that can be created and is readable and writable is used.
pub(super) fn failure_places(raw: Option<&RawText<'_>>, env: &ConfigEnvironment) -> Vec<PathBuf> {
    // The order is that of the vendor's documentation: variables precede the file, and the current
    // directory is the last resort.
    let variables = [&env.dump_path, &env.work_path];
    let mut places: Vec<PathBuf> = variables
        .into_iter()
        .flatten()
        .map(|path| env.absolute(path))
        .collect();
    if let Some(text) = raw.filter(|text| !text.is_empty()) {
        let value = text.value;
        places.push(match after_address(value) {
            Some(path) => below_current_dir(path, env),
            None => env
                .expand_home(value)
                .unwrap_or_else(|| env.absolute(value)),
        });
    }
    // A directory tried twice would be reported as two failures.
    if !places.contains(&env.current_dir) {
        places.push(env.current_dir.clone());
    }
    places
}

/// A directory that must exist.
fn existing(
    text: &RawText<'_>,
    env: &ConfigEnvironment,
    judge: RuleAuthority,
    findings: &mut IssueCollector,
) -> Result<PathBuf, ConfigRefusal> {
    let value = text.value;
    let at = &text.at;
    // Such a value begins like `ip:path` but has no path.
    let ends_with_first_colon = value.find(':') == Some(value.len() - 1);
    let mut issues = Vec::new();
    if ends_with_first_colon {
        // The vendor reports this first, and continues.
        let message = "expected a path after the colon";
        issues.push(at.unusable(value, RefusalReason::PathInvalid, message));
    }
    // The checker's behaviour is recorded for the two words alone, not for a path below them.
    let is_on_record = judge == RuleAuthority::Checker && home_prefix(value) == Some("");
    let expanded = env.expand_home(value).filter(|_| !is_on_record);
    let path = expanded.clone().unwrap_or_else(|| env.absolute(value));
    let mut refusal = |reason, message: String| {
        let mut issue = at.unusable(value, reason, message);
        if expanded.is_none() && home_prefix(value).is_some() {
            let hint = if is_on_record {
                "AscendCL does not expand `$HOME` and `~`; name a directory below them, such as \
                 `$HOME/output`, or write the directory out"
            } else {
                "the variable `HOME` is not set: write the directory out"
            };
            issue.hint = Some(hint.to_owned());
        }
        issues.push(issue);
    };
    let display = shown(&path.display().to_string());
    let real = path.canonicalize();
    match &real {
        Err(error) => refusal(
            RefusalReason::PathNotFound,
            format!("`{display}` does not exist ({error})"),
        ),
        Ok(real) if !real.is_dir() => refusal(
            RefusalReason::NotDirectory,
            format!("`{display}` is not a directory"),
        ),
        Ok(real) => {
            if let Err(error) = is_usable(real) {
                let message = format!("`{display}` is not readable and writable ({error})");
                refusal(RefusalReason::NoPermission, message);
            }
        }
    }
    // The colon alone does not make the vendor refuse an existing directory.
    let is_accepted = issues.len() == usize::from(ends_with_first_colon);
    for mut issue in issues {
        // The error becomes a warning.
        if is_accepted {
            issue.severity = Severity::Warning;
        }
        findings.push(issue);
    }
    match real {
        Ok(real) if is_accepted => {
            warn(text, expanded.as_deref(), findings);
            Ok(real)
        }
        _ => Err(ConfigRefusal),
    }
}

/// Warns about an accepted path that behaves differently elsewhere.
fn warn(text: &RawText<'_>, expanded: Option<&Path>, findings: &mut IssueCollector) {
    if let Some(path) = expanded {
        findings.warn(home_note(text, path));
    } else if !has_allowed_characters(text.value) {
        let message = format!(
            "AscendCL accepts this path and then dumps no model, because of characters other than \
             letters, digits and {CHARACTERS}"
        );
        findings.warn(text.at.warning(message));
    }
}

fn home_note(text: &RawText<'_>, path: &Path) -> ConfigIssue {
    let path = shown(&path.display().to_string());
    text.at.note(format!(
        "this is `{path}`, as documented; AscendCL does not expand `$HOME` and `~` and would look \
         for a directory of that name"
    ))
}

/// Returns the text after an IPv4 address and a colon, if `value` has that form.
///
/// The vendor converts the parts of the address like C: blanks before a number and anything after
/// it are ignored. A trailing full stop adds no part.
fn after_address(value: &str) -> Option<&str> {
    let (host, path) = value.split_once(':')?;
    let mut parts: Vec<&str> = host.split('.').collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    let is_address = parts.len() == 4 && parts.into_iter().all(is_address_part);
    (is_address && !path.is_empty()).then_some(path)
}

fn is_address_part(part: &str) -> bool {
    let part = part.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let is_negative = part.starts_with('-');
    let part = part.strip_prefix(['+', '-']).unwrap_or(part);
    let n_digits = part.bytes().take_while(u8::is_ascii_digit).count();
    match part[..n_digits].trim_start_matches('0') {
        "" => n_digits > 0,
        number => !is_negative && number.parse::<u8>().is_ok(),
    }
}

/// The vendor's library resolves the path after an address below the current directory, absolute or
/// not.
fn below_current_dir(path: &str, env: &ConfigEnvironment) -> PathBuf {
    env.absolute(path.trim_start_matches('/'))
}

fn has_allowed_characters(path: &str) -> bool {
    path.chars()
        .all(|c| c.is_ascii_alphanumeric() || CHARACTERS.contains(c))
}

/// Asks the operating system whether the directory is readable and writable, without writing.
fn is_usable(path: &Path) -> std::io::Result<()> {
    access(path, Access::READ_OK | Access::WRITE_OK).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (value, expected) in [
            ("192.168.1.1:out", Some("out")),
            ("192.168.1.1:/out:x", Some("/out:x")),
            ("0.0.0.0:x", Some("x")),
            (" 1.2.3.4:x", Some("x")),
            ("1.2.3.4abc:x", Some("x")),
            ("1.2.3.4.:x", Some("x")),
            ("+1.-0.3.0004:x", Some("x")),
            ("1.2.3.4:", None),
            ("1.2.3.256:x", None),
            ("1.2.3.99999999999:x", None),
            ("-1.2.3.4:x", None),
            ("1.2.3:x", None),
            ("1.2.3.:x", None),
            ("1..2.3:x", None),
            ("1.2.3.4.5:x", None),
            ("1.2.3.a:x", None),
            ("/a/b", None),
            (":x", None),
        ] {
            assert_eq!(after_address(value), expected, "{value:?}");
        }
    }

    #[test]
    fn places_of_failures_in_order() {
        let env = ConfigEnvironment {
            current_dir: "/cwd".into(),
            ..ConfigEnvironment::default()
        };
        let places = |env: &ConfigEnvironment| {
            let places = failure_places(None, env);
            places
                .iter()
                .map(|place| place.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&env), ["/cwd"]);
        let env = ConfigEnvironment {
            work_path: Some("work".into()),
            dump_path: Some("/dump".into()),
            ..env
        };
        assert_eq!(places(&env), ["/dump", "/cwd/work", "/cwd"]);
    }
}
