//! The files of the page, as `cargo xtask page` builds them from `web/`.

/// A file of the page with its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFile {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// The document, shared by all views.
pub(crate) const INDEX: PageFile = PageFile {
    content_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../page/index.html"),
};

/// The document of a report, with placeholders for its contents. `cargo xtask page` writes the
/// digests of script and style into its policy.
pub(crate) const REPORT: &str = include_str!("../page/report.html");
/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("../page/assets/page.js");
/// The style of the page.
pub(crate) const STYLE: &str = include_str!("../page/assets/page.css");

/// The views that an address may name.
pub(crate) const VIEWS: [&str; 6] = ["overview", "graph", "tensor", "steps", "events", "coverage"];

/// A file that the document loads.
pub(crate) fn asset(name: &str) -> Option<PageFile> {
    let (content_type, bytes): (_, &[u8]) = match name {
        "page.js" => ("text/javascript; charset=utf-8", SCRIPT.as_bytes()),
        "page.css" => ("text/css; charset=utf-8", STYLE.as_bytes()),
        _ => return None,
    };
    Some(PageFile {
        content_type,
        bytes,
    })
}
