//! `{dump file}.{side}.{index}`: the name, without its suffix, of an array that a dump file was
//! converted to.

use super::DumpFileName;
use crate::decimal::is_digits;
use crate::record::SlotSide;

/// The parts of the name of a converted tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultName {
    /// The name of the dump file.
    pub file: DumpFileName,
    /// Side and position.
    pub slot: (SlotSide, u32),
}

impl ResultName {
    /// Parses a name; dimensions may follow it, which a change of the layout appends. `None` for
    /// other names.
    pub fn parse(stem: &str) -> Option<ResultName> {
        parse_exactly(stem).or_else(|| {
            let (stem, extents) = stem.rsplit_once('.')?;
            if extents.split('x').all(is_digits) {
                parse_exactly(stem)
            } else {
                None
            }
        })
    }
}

fn parse_exactly(stem: &str) -> Option<ResultName> {
    let (rest, index) = stem.rsplit_once('.')?;
    let (file, side) = rest.rsplit_once('.')?;
    let side = [SlotSide::Input, SlotSide::Output]
        .into_iter()
        .find(|known| known.name() == side)?;
    let index = Some(index).filter(|index| is_digits(index))?.parse().ok()?;
    Some(ResultName {
        file: DumpFileName::parse(file)?,
        slot: (side, index),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_results_are_read() {
        let slot = |stem| ResultName::parse(stem).map(|name| (name.file.to_string(), name.slot));
        let file = "Add.a.1.0.5".to_owned();
        assert_eq!(
            slot("Add.a.1.0.5.input.3"),
            Some((file.clone(), (SlotSide::Input, 3)))
        );
        let relaid = "Add.a.1.0.5.output.12.1x3x2";
        assert_eq!(slot(relaid), Some((file.clone(), (SlotSide::Output, 12))));
        assert_eq!(
            slot("Add.a.1.0.5.output.0.7"),
            Some((file, (SlotSide::Output, 0)))
        );
        for stem in [
            "",
            "a",
            "Add.a.1.0.5",
            "a.input.0",
            "Add.a.1.0.5.input.+1",
            "Add.a.1.0.5.side.0",
        ] {
            assert_eq!(slot(stem), None, "{stem}");
        }
    }
}
