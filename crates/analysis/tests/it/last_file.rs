//! Elements of records that are read one after the other, from a file that stays open, against the
//! file itself.

use std::path::{Path, PathBuf};

use opscope_analysis::elements::{ElementsAccess, LastFile, NumpyArray};
use opscope_analysis::read_dump;
use opscope_store::reader::{FileKind, TensorFile};

/// Files with views that are gathered next to tensors that are stored densely.
const FILES: [&str; 3] = [
    "torch_save/views.pt",
    "torch_save/dtypes.pt",
    "torch_save/training.ckpt",
];

#[test]
fn neighbours_do_not_change_what_is_read() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden");
    let mut n_gathered = 0;
    let mut n_placed = 0;
    for name in FILES {
        let path: PathBuf = golden.join(name);
        let mut records = read_dump(&path, 1).unwrap().tensors;
        let backwards: Vec<_> = records.iter().rev().cloned().collect();
        records.extend(backwards);
        let mut file = LastFile::default();
        for record in &records {
            let place = record.elements.as_ref().unwrap();
            assert_eq!(place.kind, Some(FileKind::TorchSave));
            let slot = place.tensor.unwrap();
            let whole = TensorFile::open_for(&path, &place.real_name, Some(slot)).unwrap();
            let expected = whole
                .elements(whole.tensor(slot.0, slot.1).unwrap())
                .unwrap();
            let expected = expected.as_ref();
            let Ok(array) = NumpyArray::stored(record, None, ElementsAccess::Read) else {
                // Neither way reads what has no dtype here.
                assert!(file.with_stored(record, |_| ()).is_err());
                continue;
            };
            n_gathered += usize::from(place.offset.is_none());
            n_placed += usize::from(place.offset.is_some());
            assert!(array.bytes() == expected, "{name} {slot:?}");
            let numbers = file
                .numbers(record, true)
                .map(|numbers| format!("{numbers:?}"));
            let alone = LastFile::default().numbers(record, true);
            assert_eq!(
                numbers.ok(),
                alone.ok().map(|numbers| format!("{numbers:?}"))
            );
            let bytes = file.with_stored(record, |view| view.bytes.to_vec());
            assert!(bytes.unwrap() == expected, "{name} {slot:?}");
        }
    }
    assert!(n_gathered > 5 && n_placed > 5, "{n_gathered} {n_placed}");
}
