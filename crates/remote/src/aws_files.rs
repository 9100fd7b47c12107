//! AWS's credentials and config files, written by its tools: a section in brackets for each
//! profile, with lines `name = value`.

use std::collections::HashMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use opscope_store::regular_file;

/// Maximum size of these files.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The values of one profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AwsProfile {
    /// Its name.
    pub(crate) name: String,
    values: HashMap<String, String>,
    files: Vec<PathBuf>,
}

impl AwsProfile {
    /// Reads the profile that `AWS_PROFILE` names, or `default`. The credentials file takes
    /// precedence over the config file.
    ///
    /// # Errors
    /// If a file exists and cannot be read.
    pub(crate) fn read() -> io::Result<AwsProfile> {
        let name = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        let mut profile = AwsProfile {
            name: name.unwrap_or_else(|| "default".to_owned()),
            ..AwsProfile::default()
        };
        let home = env::var_os("HOME").map(PathBuf::from);
        for (variable, file) in [
            ("AWS_CONFIG_FILE", ".aws/config"),
            ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
        ] {
            let given = env::var_os(variable).map(PathBuf::from);
            let Some(path) = given.or_else(|| Some(home.as_ref()?.join(file))) else {
                continue;
            };
            if let Some(text) = read(&path)? {
                profile.add(&text);
            }
            profile.files.push(path);
        }
        Ok(profile)
    }

    /// Adds the values of the profile's section.
    fn add(&mut self, text: &str) {
        let mut is_ours = false;
        for line in text.lines() {
            if let Some(section) = line.trim().strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default().trim();
                // The config file has a prefix before all names but `default`.
                let section = section.strip_prefix("profile ").unwrap_or(section);
                is_ours = section.trim() == self.name;
                continue;
            }
            // Indented lines belong to a nested section, such as `s3 =`.
            let is_plain = !line.starts_with([' ', '\t', '#', ';']);
            if let Some((name, value)) = line.split_once('=')
                && is_ours
                && is_plain
            {
                let name = name.trim().to_ascii_lowercase();
                self.values.insert(name, value.trim().to_owned());
            }
        }
    }

    /// The value of a name; none if it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// The access key ID and its secret.
    pub(crate) fn key(&self) -> Option<(&str, &str)> {
        self.get("aws_access_key_id")
            .zip(self.get("aws_secret_access_key"))
    }

    /// The files that were read.
    pub(crate) fn files_in_words(&self) -> String {
        let names = self
            .files
            .iter()
            .map(|path| format!("`{}`", path.display()));
        names.collect::<Vec<_>>().join(" and ")
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match regular_file::read(path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let reason = format!("cannot read `{}`: {error}", path.display());
            Err(io::Error::new(error.kind(), reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_the_values_of_its_section() {
        let mut profile = AwsProfile {
            name: "lab".to_owned(),
            ..AwsProfile::default()
        };
        profile.add(
            "[default]\nregion = a\n[profile lab]\nregion=eu-central-1\ns3 =\n  \
             endpoint_url = no\n# aws_session_token = no\n",
        );
        profile.add("[lab]\naws_access_key_id = AK\naws_secret_access_key = a=b/c\n[x]\nregion=x");
        assert_eq!(profile.get("region"), Some("eu-central-1"));
        assert_eq!(profile.key(), Some(("AK", "a=b/c")));
        assert_eq!(profile.get("endpoint_url"), None);
        assert_eq!(profile.get("aws_session_token"), None);
        assert_eq!(profile.get("s3"), None);
    }
}
