//! Reads an `acl.json`, with the interface's codes.

use std::io::Read;
use std::path::Path;

use opscope_config::dialect::acl::{self, AclDump, ReportScope};
use opscope_config::{CONFIG_BYTES_MAX, ConfigIssue, Severity, check_nesting};
use opscope_store::regular_file;

use crate::status::{INTERNAL_ERROR, INVALID_DUMP_CONFIG, INVALID_FILE, INVALID_PARAM, PARSE_FILE};
use crate::{AclProcess, Answer, Status};

/// The settings that `aclInit` puts in force.
#[derive(Debug)]
pub(crate) struct InitConfig {
    /// The dump, if one is requested.
    pub(crate) dump: Option<AclDump>,
    /// The scope of the reported errors.
    pub(crate) report_scope: ReportScope,
}

/// A configuration file that was read.
pub(crate) struct ConfigText<'a> {
    process: &'a AclProcess,
    /// The path as given by the caller.
    name: String,
    bytes: Vec<u8>,
}

impl<'a> ConfigText<'a> {
    /// Reads a file. `first` is the required text, if any.
    pub(crate) fn read(
        process: &'a AclProcess,
        path: &Path,
        parameter: &str,
        first: Option<&[u8]>,
    ) -> Answer<ConfigText<'a>> {
        let name = path.display().to_string();
        let refuse = |reason: &str| process.refuse(INVALID_FILE, "EH0004", &[&name, reason]);
        let unreadable = |error: std::io::Error| {
            process.refuse(INVALID_FILE, "EH0003", &[&name, &error.to_string()])
        };
        // Opening a pipe would wait for its other end.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(refuse("it is not a regular file"));
        }
        let (file, _) = regular_file::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        // Reading one byte more detects a longer file without loading it.
        file.take(CONFIG_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        // The vendor's library compares before it checks the size, and so returns another code.
        if first.is_some_and(|first| first != bytes) {
            let reason = "the text differs from that of the first configuration of this process";
            return Err(process.refuse(INVALID_PARAM, "EH0001", &[&name, parameter, reason]));
        }
        if bytes.len() as u64 > CONFIG_BYTES_MAX {
            let reason = format!("it has more than {CONFIG_BYTES_MAX} bytes");
            return Err(refuse(&reason));
        }
        Ok(ConfigText {
            process,
            name,
            bytes,
        })
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Accepts or refuses the configuration like `aclInit`.
    pub(crate) fn accept_init(&self) -> Answer<InitConfig> {
        let text = self.decode(PARSE_FILE)?;
        // The vendor's library checks `err_msg_mode` before `dump`, so a file with both wrong gets
        // the code of the former.
        let report_scope = acl::report_scope(text).map_err(|issue| match &issue.report {
            Some(_) => self.refuse(PARSE_FILE, &issue),
            None => {
                let expected = issue.expected.as_deref().unwrap_or_default();
                let found = issue.found.as_deref().unwrap_or_default();
                let placeholders = [found, &issue.item, &self.name, expected];
                self.process.refuse(INVALID_PARAM, "EP0002", &placeholders)
            }
        })?;
        Ok(InitConfig {
            dump: self.lower(text)?,
            report_scope,
        })
    }

    /// Accepts or refuses it like `aclmdlSetDump`; returns the dump, if one is requested.
    pub(crate) fn accept_set_dump(&self) -> Answer<Option<AclDump>> {
        self.lower(self.decode(INVALID_DUMP_CONFIG)?)
    }

    /// The text. `other_encoding` is the code for bytes that are not UTF-8.
    fn decode(&self, other_encoding: Status) -> Answer<&str> {
        // The vendor's library counts nesting in the raw bytes, even without valid UTF-8.
        let lossy = String::from_utf8_lossy(&self.bytes);
        check_nesting(&lossy).map_err(|issue| {
            let placeholders = [self.name.as_str(), issue.message.as_str()];
            self.process.refuse(PARSE_FILE, "EP0004", &placeholders)
        })?;
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let reason = error.to_string();
            self.process
                .refuse(other_encoding, "EP0004", &[&self.name, &reason])
        })
    }

    fn lower(&self, text: &str) -> Answer<Option<AclDump>> {
        let process = self.process;
        let environment = process.environment().map_err(|error| {
            let text = format!("the current directory cannot be determined: {error}");
            process.inner_error(INTERNAL_ERROR, &text)
        })?;
        let config = acl::load(text, &environment).map_err(|issues| {
            let mut status = INVALID_DUMP_CONFIG;
            let errors = issues.iter();
            for issue in errors.filter(|issue| issue.severity == Severity::Error) {
                status = self.refuse(INVALID_DUMP_CONFIG, issue);
            }
            status
        })?;
        for issue in &config.issues {
            match issue.severity {
                Severity::Note => process.log.info(format_args!("{}:{issue}", self.name)),
                _ => process.log.warning(format_args!("{}:{issue}", self.name)),
            }
        }
        Ok(config.dump)
    }

    fn refuse(&self, status: Status, issue: &ConfigIssue) -> Status {
        match &issue.report {
            Some(report) => {
                let placeholders = report.placeholders(&self.name);
                let placeholders: Vec<&str> = placeholders.iter().map(String::as_str).collect();
                self.process.refuse(status, report.code(), &placeholders)
            }
            None => {
                let placeholders = [self.name.as_str(), issue.message.as_str()];
                self.process.refuse(status, "EH0004", &placeholders)
            }
        }
    }
}
