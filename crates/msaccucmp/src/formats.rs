//! The layouts that the reference knows by name.

use opscope_store::file_format::dump_data::layout_from_code;
use opscope_tensor::Layout;

use crate::failure::{ErrorCode, ToolFailure};

/// The reference's name of a layout, or `None` if it has none.
pub(super) fn name(layout: Layout) -> Option<&'static str> {
    use Layout::*;
    Some(match layout {
        // The reference has no names for these: every operation that needs a name fails, but plain
        // npy files do not.
        FractalZz | Nc | Ncl | FractalZWino | C1hwc0 => return None,
        FractalDeconvSpStride8Trans => "DECONV_SP_STRIDE8_TRANS",
        HashtableLookupLookups => "LOOKUP_LOOKUPS",
        HashtableLookupKeys => "LOOKUP_KEYS",
        HashtableLookupValue => "LOOKUP_VALUE",
        HashtableLookupOutput => "LOOKUP_OUTPUT",
        HashtableLookupHits => "LOOKUP_HITS",
        other => other.name(),
    })
}

/// The layout with the reference's name `text`.
pub(super) fn from_name(text: &str) -> Option<Layout> {
    Layout::ALL
        .iter()
        .copied()
        .find(|&layout| name(layout) == Some(text))
}

/// The layout with a number from a dump header, and its name.
pub(super) fn from_code(code: u32) -> Result<(Layout, &'static str), ToolFailure> {
    layout_from_code(code)
        .and_then(|layout| Some((layout, name(layout)?)))
        .ok_or_else(|| {
            ToolFailure::new(
                ErrorCode::Format,
                format!("The format({code}) does not support."),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_references() {
        for (code, expected) in [
            (0, Some("NCHW")),
            (15, Some("DECONV_SP_STRIDE8_TRANS")),
            (20, Some("LOOKUP_LOOKUPS")),
            (28, None),
            (40, Some("RESERVED")),
            (47, None),
            (200, None),
            (255, Some("MAX")),
        ] {
            let found = from_code(code).ok();
            assert_eq!(found.map(|(_, name)| name), expected, "{code}");
            assert_eq!(
                expected.and_then(from_name),
                found.map(|(layout, _)| layout)
            );
        }
        assert_eq!(from_name("nchw"), None);
    }
}
