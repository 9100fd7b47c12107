//! Small parsers for arguments.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::PermissionModes;
use opscope_store::decimal::is_digits;
use opscope_store::file_format::zstd::CompressionLevel;
use opscope_tensor::{Layout, Shape};

/// `NAME=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// `NAME:1,3,224,224`; nothing after the colon means a scalar.
#[derive(Clone, Debug)]
pub(crate) struct NamedShape {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// Permissions of new files and directories.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ModeArguments {
    /// Permissions of created directories, octal
    #[arg(long, value_name = "MODE", default_value = "700", value_parser = mode, help_heading = "Permissions")]
    dir_mode: u32,
    /// Permissions of created files, octal
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode, help_heading = "Permissions")]
    file_mode: u32,
}

impl ModeArguments {
    pub(crate) fn modes(self) -> PermissionModes {
        PermissionModes {
            dir: self.dir_mode,
            file: self.file_mode,
        }
    }
}

pub(crate) fn named_file(text: &str) -> Result<NamedFile, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(NamedFile {
            name: name.to_owned(),
            path: path.into(),
        }),
        // Users most often slip by passing an archive or a directory here, which is what `--inputs`
        // takes.
        _ if is_of_all_inputs(Path::new(text)) => Err(format!(
            "expected NAME=FILE; to pass all inputs in an archive or a directory, use --inputs {text}"
        )),
        _ => Err("expected NAME=FILE".into()),
    }
}

/// Whether a path is an archive or a directory, which hold several inputs.
fn is_of_all_inputs(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "npz") || path.is_dir()
}

pub(crate) fn named_shape(text: &str) -> Result<NamedShape, String> {
    // Names may hold colons; shapes do not.
    let (name, dims) = text.rsplit_once(':').ok_or("expected NAME:1,3,224,224")?;
    Ok(NamedShape {
        name: name.to_owned(),
        shape: shape(dims)?,
    })
}

/// `1,3,224,224` or `1x3x224x224`; an empty text means a scalar.
pub(crate) fn shape(text: &str) -> Result<Shape, String> {
    let dims = match text {
        "" => Vec::new(),
        _ => text
            // Accepts the form in which tables print shapes, `2x3`.
            .split([',', 'x'])
            .map(|dim| {
                dim.trim()
                    .parse()
                    .map_err(|_| format!("`{dim}` is not a dimension"))
            })
            .collect::<Result<Vec<usize>, _>>()?,
    };
    Shape::new(dims).map_err(|error| error.to_string())
}

/// Ranges of numbers as written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberRanges(pub(crate) Vec<RangeInclusive<u64>>);

impl fmt::Display for NumberRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match (*range.start(), *range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, u64::MAX) => write!(f, "{comma}{first}-")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl NumberRanges {
    /// Whether any range contains a number.
    pub(crate) fn contains(&self, number: impl Into<u64>) -> bool {
        let number = number.into();
        self.0.iter().any(|range| range.contains(&number))
    }
}

/// Steps: `N`, `N-M` or `N-`, separated by commas.
pub(crate) fn step_ranges(text: &str) -> Result<NumberRanges, String> {
    ranges(text, "step")
}

/// Ranks, in the same syntax.
pub(crate) fn rank_ranges(text: &str) -> Result<NumberRanges, String> {
    ranges(text, "rank")
}

fn number(text: &str, noun: &str) -> Result<u64, String> {
    // `parse` alone would take `+1` for a number.
    let number = text.parse().ok().filter(|_| is_digits(text));
    number.ok_or_else(|| format!("`{text}` is not the number of a {noun}"))
}

fn ranges(text: &str, noun: &str) -> Result<NumberRanges, String> {
    text.split(',')
        .map(|part| match part.split_once('-') {
            None => number(part, noun).map(|only| only..=only),
            // `Display` prints an end of `u64::MAX` as an open range, so a saved result keeps the
            // range as written.
            Some((first, "")) => Ok(number(first, noun)?..=u64::MAX),
            Some((first, last)) => match (number(first, noun)?, number(last, noun)?) {
                (first, last) if first <= last => Ok(first..=last),
                _ => Err(format!("`{part}` ends before it begins")),
            },
        })
        .collect::<Result<_, _>>()
        .map(NumberRanges)
}

/// A number of bytes: digits, then nothing, `B`, or a unit of thousands (`k`, `M`, `G`, `T`, each
/// also with `B`) or of 1024 (`KiB`, `MiB`, `GiB`, `TiB`), in any letter case.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let expected =
        || "expected a number of bytes, such as 500000000, 500M, 500MB or 2GiB".to_owned();
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(n_digits);
    if digits.is_empty() {
        return Err(expected());
    }
    let unit: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        // Decimal units, as disks and `format::bytes` have them; binary ones only when spelled out.
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(expected()),
    };
    // Both steps can exceed `u64`: the digits alone, and their product with the unit.
    let n: Option<u64> = digits.parse().ok();
    let n_bytes = n.and_then(|n| n.checked_mul(unit));
    n_bytes.ok_or_else(|| format!("the maximum is {} bytes", u64::MAX))
}

/// A layout's name in any letter case.
pub(crate) fn layout(text: &str) -> Result<Layout, String> {
    let found = Layout::ALL
        .iter()
        .find(|layout| layout.name().eq_ignore_ascii_case(text))
        .copied();
    found.ok_or_else(|| {
        "expected the name of a layout, such as NCHW, NHWC, ND, NC1HWC0 or FRACTAL_NZ".to_owned()
    })
}

/// `zstd` or `zstd:LEVEL`.
pub(crate) fn compression(text: &str) -> Result<CompressionLevel, String> {
    let level = match text.split_once(':') {
        None if text == "zstd" => return Ok(CompressionLevel::default()),
        Some(("zstd", level)) => level.parse().ok().and_then(CompressionLevel::new),
        _ => return Err("expected zstd or zstd:LEVEL".into()),
    };
    level.ok_or_else(|| {
        format!(
            "expected a level from {} to {}",
            CompressionLevel::MIN,
            CompressionLevel::MAX
        )
    })
}

fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        // Higher bits, such as setuid, are not permissions.
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("expected three octal digits, such as 750".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_colons() {
        let parsed = named_shape("a:0:2,3").unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.shape.dims()),
            ("a:0", &[2, 3][..])
        );
        assert_eq!(named_shape("x:").unwrap().shape.dims(), [] as [usize; 0]);
        assert_eq!(named_shape("x:2x3").unwrap().shape.dims(), [2, 3]);
        assert!(named_shape("x").is_err());
        assert!(named_shape("x:-1").is_err());
    }

    #[test]
    fn levels_of_compression_have_limits() {
        assert_eq!(compression("zstd"), Ok(CompressionLevel::default()));
        for level in [1, 19] {
            assert_eq!(
                compression(&format!("zstd:{level}")).ok(),
                CompressionLevel::new(level)
            );
        }
        for text in [
            "", "gzip", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:a", "zstd1",
        ] {
            assert!(compression(text).is_err(), "{text}");
        }
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(mode("755"), Ok(0o755));
        assert!(mode("888").is_err());
        assert!(mode("7777").is_err());
    }

    #[test]
    fn step_lists() {
        let check = |text: &str, expected: Result<&[RangeInclusive<u64>], &str>| {
            let found = step_ranges(text);
            let found = found
                .as_ref()
                .map(|ranges| &*ranges.0)
                .map_err(String::as_str);
            assert_eq!(found, expected, "{text}");
        };
        check("7", Ok(&[7..=7]));
        check("0-3,10,20-", Ok(&[0..=3, 10..=10, 20..=u64::MAX]));
        check("5-5", Ok(&[5..=5]));
        check("", Err("`` is not the number of a step"));
        check("1,,2", Err("`` is not the number of a step"));
        check("-3", Err("`` is not the number of a step"));
        check("3-1", Err("`3-1` ends before it begins"));
        check("1-2-3", Err("`2-3` is not the number of a step"));
        check("+1", Err("`+1` is not the number of a step"));
        let many = "99999999999999999999";
        check(
            many,
            Err("`99999999999999999999` is not the number of a step"),
        );
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("123", Some(123)),
            ("123B", Some(123)),
            ("500M", Some(500_000_000)),
            ("500mb", Some(500_000_000)),
            ("3k", Some(3_000)),
            ("1KiB", Some(1 << 10)),
            ("2GiB", Some(2 << 30)),
            ("1G", Some(1_000_000_000)),
            ("1TiB", Some(1 << 40)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615K", None),
            ("", None),
            ("M", None),
            ("-1", None),
            ("1.5G", None),
            ("1 G", None),
            ("1Gi", None),
            ("1GiBs", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
