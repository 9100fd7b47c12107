//! Files with random damage: read, converted or refused, but never the end of the process.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::convert::{self, ConvertedForm};
use opscope_analysis::elements::WantedLayout;
use opscope_analysis::{describe, overflow};
use opscope_store::atomic_file::PermissionModes;

const N_ROUNDS: u64 = 20;
const KINDS: [ConvertedForm; 6] = [
    ConvertedForm::Npy,
    ConvertedForm::MsNpy,
    ConvertedForm::Bin,
    ConvertedForm::Txt,
    ConvertedForm::Safetensors,
    ConvertedForm::Pt,
];
const LAYOUTS: [&str; 8] = [
    "NCHW",
    "NHWC",
    "ND",
    "NCDHW",
    "NC1HWC0",
    "FRACTAL_Z",
    "FRACTAL_NZ",
    "FRACTAL_Z_3D",
];

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// Mostly damage to the header: the payload holds numbers, and every number is fine.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let n_header = 8 + usize::from(bytes.first().copied().unwrap_or(0)).max(100);
    for _ in 0..=random.below(4) {
        let n = bytes.len().min(n_header);
        if let Some(byte) = bytes.get_mut(random.below(n)) {
            *byte = random.below(256) as u8;
        }
    }
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
}

fn dumps() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dirs = [
        "analysis/tests/golden/cann/dumps",
        "msaccucmp/tests/golden/convert_nano/in/d",
        "msaccucmp/tests/golden/convert_attr/in/d",
        "msaccucmp/tests/golden/ffts_plus/in/l",
        "msaccucmp/tests/golden/format_nc1hwc0/in/d",
        "msaccucmp/tests/golden/format_fractal_z/in/d",
        "msaccucmp/tests/golden/format_fractal_nz/in/d",
        "msaccucmp/tests/golden/format_to_fractal_z/in/d",
        "msaccucmp/tests/golden/format_ndc1hwc0/in/d",
    ];
    let mut paths: Vec<PathBuf> = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(crates.join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

#[test]
fn nothing_ends_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let (dump, out) = (dir.path().join("dump"), dir.path().join("out"));
    fs::create_dir(&dump).unwrap();
    let mut random = Random(7);
    for round in 0..N_ROUNDS {
        for path in dumps() {
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes, &mut random);
            let damaged = dump.join(path.file_name().unwrap());
            fs::write(&damaged, &bytes).unwrap();
            let _ = describe::file(&damaged);
        }
        let sources = convert::sources(&dump).sources;
        let layout = LAYOUTS[random.below(LAYOUTS.len())];
        let relayout = (round % 3 > 0).then(|| WantedLayout {
            target: layout.parse().unwrap(),
            shape: None,
        });
        let options = convert::ConversionOptions {
            out: out.clone(),
            kind: KINDS[random.below(KINDS.len())],
            relayout,
            compression: None,
            pick: None,
            n_threads: 2,
            modes: PermissionModes::default(),
            is_replacing: true,
        };
        let report = convert::run(&sources, &options, |_| {}).unwrap();
        assert!(report.n_arrays + report.failures.len() as u64 > 0);
        let scan = overflow::scan(&dump, 2);
        assert_eq!(scan.n_record_files, 4);
    }
}
