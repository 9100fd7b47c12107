//! Archives whose bytes depend on nothing but the content of the files and one date.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{VERSION, output};

/// Archives the content of a directory.
pub(super) fn tar(dir: &Path, compressor: &str, epoch: &str, out: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"]);
    tar.args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{epoch}"));
    tar.arg(format!("--use-compress-program={compressor}"));
    tar.arg("--file").arg(out).arg("--directory").arg(dir);
    // Names of members without `./`.
    let mut names: Vec<_> = fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    names.sort();
    output(tar.args(names)).map(drop)
}

/// Unpacks an archive of any compression.
pub(super) fn unpack(archive: &Path, dir: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive);
    output(tar.arg("--directory").arg(dir)).map(drop)
}

pub(super) fn gzip(from: &Path, to: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    let status = gzip
        .args(["-9nc"])
        .arg(from)
        .stdout(File::create(to)?)
        .status();
    if !status.context("cannot start gzip")?.success() {
        bail!("gzip failed on `{}`", from.display());
    }
    Ok(())
}

/// Writes a package of Debian with the content of a directory.
pub(super) fn deb(dir: &Path, epoch: u64, out: &Path) -> Result<()> {
    let work = dir.with_extension("parts");
    let control_dir = work.join("control");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&control_dir)?;
    let mut find = Command::new("find");
    find.args(["usr", "-type", "f", "-exec", "md5sum", "{}", "+"]);
    let sums = output(find.current_dir(dir))?;
    let mut sums: Vec<&str> = sums.lines().collect();
    sums.sort_by_key(|line| line.split_once("  ").map(|(_, name)| name));
    fs::write(control_dir.join("md5sums"), sums.join("\n") + "\n")?;
    let size = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(dir))?;
    let kibibytes = size.split_whitespace().next().unwrap_or_default();
    fs::write(control_dir.join("control"), control(kibibytes))?;
    let (control, data) = (work.join("control.tar.xz"), work.join("data.tar.xz"));
    let epoch_text = epoch.to_string();
    tar(&control_dir, "xz -6", &epoch_text, &control)?;
    tar(dir, "xz -6", &epoch_text, &data)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.xz", fs::read(control)?),
        ("data.tar.xz", fs::read(data)?),
    ];
    fs::write(out, ar(&members, epoch)).with_context(|| format!("cannot write `{}`", out.display()))
}

fn control(kibibytes: &str) -> String {
    format!(
        "Package: opscope\nVersion: {VERSION}\nArchitecture: amd64\n\
         Maintainer: Opscope contributors\nInstalled-Size: {kibibytes}\nDepends: libc6 (>= 2.17)\n\
         Section: science\nPriority: optional\n\
         Description: finds the operator at which a neural network goes wrong\n \
         Runs a neural network, dumps the inputs and outputs of every operator, compares\n \
         two dumps and names the operator that caused the difference.\n"
    )
}

/// An archive in the format of `ar`, of members with short names.
fn ar(members: &[(&str, Vec<u8>)], epoch: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        let header = format!(
            "{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 100_644
        );
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        // Members begin at even offsets.
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Unpacks a package of Debian with Debian's own program, or without it as an archive of `ar`.
pub(super) fn unpack_deb(deb: &Path, dir: &Path) -> Result<()> {
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--extract").arg(deb).arg(dir);
    match dpkg.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("dpkg-deb refuses `{}` ({status})", deb.display()),
        Err(_) => {
            output(Command::new("ar").arg("x").arg(deb).current_dir(dir))?;
            unpack(&dir.join("data.tar.xz"), dir)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_debian_has_the_files_and_is_the_same_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let stage = dir.path().join("stage");
        fs::create_dir_all(stage.join("usr/bin")).unwrap();
        fs::write(stage.join("usr/bin/opscope"), "program").unwrap();
        let packages = ["a.deb", "b.deb"].map(|name| {
            let path = dir.path().join(name);
            deb(&stage, 1_000_000_000, &path).unwrap();
            path
        });
        let [first, second] = packages.each_ref().map(|path| fs::read(path).unwrap());
        assert!(
            first == second && first.starts_with(b"!<arch>\ndebian-binary   1000000000  0     0")
        );
        let installed = dir.path().join("installed");
        fs::create_dir(&installed).unwrap();
        unpack_deb(&packages[0], &installed).unwrap();
        let content = fs::read_to_string(installed.join("usr/bin/opscope")).unwrap();
        assert_eq!(content, "program");
    }
}
