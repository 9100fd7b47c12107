//! `cargo xtask release`: packages of Opscope, each made and tried.

mod archive;
mod build;
mod elf;
mod layout;
mod sbom;
mod smoke;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::smoke::Launcher;
use crate::command::{cargo, root};
use crate::{licences, page};

const OUT: &str = "target/release-packages";
/// The directories from which packages are made, and in which they are tried.
const STAGES: &str = "target/release-stages";
/// The version of every crate of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A package.
struct Package {
    name: &'static str,
    /// Writes the package and returns its path.
    make: fn(&Release) -> Result<PathBuf>,
    /// Installs the package and runs the first page of the guide.
    check: fn(&Release, &Path) -> Result<()>,
}

const PACKAGES: [Package; 4] = [
    Package {
        name: "source",
        make: make_source,
        check: check_source,
    },
    Package {
        name: "archive",
        make: make_archive,
        check: check_archive,
    },
    Package {
        name: "deb",
        make: make_deb,
        check: check_deb,
    },
    Package {
        name: "wheel",
        make: wheel::make,
        check: wheel::check,
    },
];

/// Files and facts that all packages share.
struct Release {
    /// The directory of the packages.
    out: PathBuf,
    /// Seconds since 1970 of the commit, the date of every file.
    epoch: String,
    notices: PathBuf,
    sbom: PathBuf,
}

/// Makes and tries the packages that the arguments name, or all.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut out = root().join(OUT);
    let mut chosen: Vec<&Package> = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--out" {
            out = root().join(arguments.next().context("`--out` needs a directory")?);
        } else {
            let named = PACKAGES.iter().find(|package| package.name == argument);
            chosen.push(named.with_context(|| {
                let names: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
                format!("`{argument}` is no package; expected {}", names.join(", "))
            })?);
        }
    }
    if chosen.is_empty() {
        chosen = PACKAGES.iter().collect();
    }
    let release = Release::prepare(out)?;
    let mut made = vec![release.notices.clone(), release.sbom.clone()];
    made.push(release.write_notes()?);
    for package in chosen {
        let path = (package.make)(&release)?;
        (package.check)(&release, &path)?;
        let n_bytes = fs::metadata(&path)?.len();
        eprintln!("{}: {n_bytes} bytes, tried", path.display());
        made.push(path);
    }
    release.write_sums(&made)
}

impl Release {
    fn prepare(out: PathBuf) -> Result<Self> {
        fs::create_dir_all(&out).with_context(|| format!("cannot create `{}`", out.display()))?;
        if !git(&["status", "--porcelain"])?.is_empty() {
            eprintln!("warning: uncommitted changes: the source archive will not have them");
        }
        let epoch =
            std::env::var("SOURCE_DATE_EPOCH").or_else(|_| git(&["log", "-1", "--format=%ct"]))?;
        page::provide_packages()?;
        let notices = out.join("THIRD_PARTY_NOTICES");
        licences::write(&notices)?;
        let sbom = out.join(format!("opscope-{VERSION}.cdx.json"));
        sbom::write(&sbom)?;
        Ok(Self {
            out,
            epoch,
            notices,
            sbom,
        })
    }

    /// An empty directory for making or trying a package.
    fn stage(&self, name: &str) -> Result<PathBuf> {
        let dir = root().join(STAGES).join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot clear `{}`", dir.display()))?;
        }
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Writes the changelog's section of this version, or of the next one.
    fn write_notes(&self) -> Result<PathBuf> {
        let changelog = fs::read_to_string(root().join("CHANGELOG.md")).context("CHANGELOG.md")?;
        let notes = section(&changelog, VERSION).or_else(|| section(&changelog, "Unreleased"));
        let path = self.out.join("RELEASE_NOTES.md");
        let notes = notes.context("CHANGELOG.md has no section for this version")?;
        fs::write(&path, format!("# Opscope {VERSION}\n\n{notes}\n"))?;
        Ok(path)
    }

    fn write_sums(&self, files: &[PathBuf]) -> Result<()> {
        let mut names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
        names.sort();
        let sums = output(Command::new("sha256sum").args(names).current_dir(&self.out))?;
        fs::write(self.out.join("SHA256SUMS"), sums)?;
        Ok(())
    }
}

/// The text below a version's heading of the changelog.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let (_, behind) = changelog.split_once(&format!("\n## [{version}]"))?;
    let (_heading, text) = behind.split_once('\n')?;
    Some(text.split("\n## ").next().unwrap_or(text).trim())
}

fn make_source(release: &Release) -> Result<PathBuf> {
    let path = release.out.join(format!("opscope-{VERSION}-source.tar.gz"));
    let tar = release.stage("source")?.join("source.tar");
    let prefix = format!("--prefix=opscope-{VERSION}/");
    let tar_name = tar.to_str().context("a path that is not UTF-8")?;
    // git dates the files by the commit.
    git(&["archive", &prefix, "-o", tar_name, "HEAD"])?;
    archive::gzip(&tar, &path)?;
    Ok(path)
}

/// Compares the files with git's, and has Cargo resolve the unpacked workspace. Building it would
/// build everything again.
fn check_source(release: &Release, path: &Path) -> Result<()> {
    let dir = release.stage("source")?;
    archive::unpack(path, &dir)?;
    let dir = dir.join(format!("opscope-{VERSION}"));
    for name in git(&["ls-files", "-z"])?.split_terminator('\0') {
        if fs::symlink_metadata(dir.join(name)).is_err() {
            bail!("`{}` lacks `{name}`", path.display());
        }
    }
    let mut metadata = cargo(&["metadata", "--format-version", "1", "--locked"]);
    output(metadata.arg("--offline").current_dir(dir)).map(drop)
}

fn make_archive(release: &Release) -> Result<PathBuf> {
    let built = build::build()?;
    let name = format!("opscope-{VERSION}-x86_64-linux");
    let stage = release.stage("archive")?;
    layout::install(release, &built, &stage.join(&name))?;
    layout::install_c_library(&built, &stage.join(&name).join("lib/opscope"))?;
    let path = release.out.join(format!("{name}.tar.gz"));
    archive::tar(&stage, "gzip -9n", &release.epoch, &path)?;
    Ok(path)
}

fn check_archive(release: &Release, path: &Path) -> Result<()> {
    let dir = release.stage("archive-installed")?;
    archive::unpack(path, &dir)?;
    let prefix = format!("opscope-{VERSION}-x86_64-linux");
    check_prefix(&dir, &prefix)
}

fn make_deb(release: &Release) -> Result<PathBuf> {
    let built = build::build()?;
    let stage = release.stage("deb")?;
    layout::install(release, &built, &stage.join("usr"))?;
    layout::install_c_library(&built, &stage.join("usr/lib/opscope"))?;
    let path = release.out.join(format!("opscope_{VERSION}_amd64.deb"));
    archive::deb(&stage, release.epoch.parse()?, &path)?;
    Ok(path)
}

fn check_deb(release: &Release, path: &Path) -> Result<()> {
    let dir = release.stage("deb-installed")?;
    archive::unpack_deb(path, &dir)?;
    check_prefix(&dir, "usr")
}

/// Tries the command and the C library below `prefix` of an empty root directory.
fn check_prefix(root_dir: &Path, prefix: &str) -> Result<()> {
    let launcher = Launcher::in_root(root_dir, &format!("/{prefix}/bin/opscope"))?;
    smoke::first_page(&launcher)?;
    let c_library = root_dir.join(prefix).join("lib/opscope");
    smoke::c_program(
        &launcher,
        &c_library,
        &format!("/{prefix}/lib/opscope/lib64"),
    )
}

/// The output of a git command in the project.
fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    let text = output(git.args(arguments).current_dir(root()))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// The standard output of a program that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.output();
    let output = output.with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {} ({errors})", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_version() {
        let changelog = "# Log\n\n## [Unreleased]\n\nnew\n\n## [0.1.0] - 2026-01-01\n\n- old\n";
        assert_eq!(section(changelog, "Unreleased"), Some("new"));
        assert_eq!(section(changelog, "0.1.0"), Some("- old"));
        assert_eq!(section(changelog, "0.2.0"), None);
    }
}
