//! Any path has the tags of a value that SGLang's dumper saved, or none, and yields a label.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use opscope_store::tree::sglang::{PassFile, ValueTags};

fuzz_target!(|text: &str| {
    let path = Path::new(text);
    let _ = PassFile::from_path(path);
    let Some(mut tags) = ValueTags::from_path(path) else {
        return;
    };
    let label = tags.label(&tags.name, |_| true);
    assert!(label.starts_with(&tags.name));
    let _ = tags.module_value();
    tags.correct(&[("name".to_owned(), text.to_owned())]);
    assert_eq!(tags.name, text);
});
