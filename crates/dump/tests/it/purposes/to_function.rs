//! A dump that goes to a function.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use opscope_capture::{Plan, SinkError};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{AclSink, CHUNK_BYTES_MAX, FileChunk};
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_tensor::{DType, Shape, Tensor};

use super::double::{TIME, execute, floats, operator, timeless, with_session};

/// Files put together from chunks.
#[derive(Default)]
struct Received {
    open: Option<(PathBuf, Vec<u8>)>,
    files: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    n_chunks: u32,
}

impl Received {
    fn take(&mut self, chunk: &FileChunk<'_>) {
        assert!(chunk.n_bytes > 0 && chunk.n_bytes <= CHUNK_BYTES_MAX);
        let (path, bytes) = self
            .open
            .get_or_insert_with(|| (chunk.path.to_owned(), Vec::new()));
        assert_eq!(path, chunk.path, "chunks of two files are mixed");
        bytes.extend(chunk.parts.concat());
        self.n_chunks += 1;
        if chunk.is_last {
            let (path, bytes) = self.open.take().unwrap();
            self.files.insert(path, (bytes, self.n_chunks));
            self.n_chunks = 0;
        }
    }
}

fn sink_into(received: &Arc<Mutex<Received>>, dump_path: &Path) -> AclSink {
    let received = received.clone();
    let function = Arc::new(move |chunk: &FileChunk<'_>| {
        received.lock().unwrap().take(chunk);
        Ok(())
    });
    AclSink::to_function(dump_path, TIME, function).unwrap()
}

#[test]
fn the_same_bytes_and_names_and_nothing_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let received = Arc::new(Mutex::new(Received::default()));
    let sink = sink_into(&received, dir.path());
    // A name that no file system takes, and operators enough for several writers.
    let long = "x".repeat(300);
    let operators: Vec<_> = (0..40)
        .map(|i| operator(i, "Add", &format!("{long}{i}"), &["x"], &["y"]))
        .collect();
    let summary = with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
        for (operator, i) in operators.iter().zip(0_u8..) {
            let i = f32::from(i);
            execute(tap, operator, &[floats(&[i])], &[floats(&[i, i + 1.0])]);
        }
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let received = received.lock().unwrap();
    assert_eq!(received.files.len(), 40);
    let mut n_bytes = 0;
    for (path, (bytes, n_chunks)) in &received.files {
        assert!(path.is_absolute());
        assert_eq!(*n_chunks, 1);
        n_bytes += bytes.len() as u64;
        let file = DumpFile::from_bytes(bytes.clone()).unwrap();
        let name = file.header().op_name.clone();
        let i: u32 = name[300..].parse().unwrap();
        let expected = format!("{TIME}/0/net/1/0/Add.{name}.{i}.0.STAMP");
        let below = path.strip_prefix(dir.path()).unwrap();
        assert_eq!(timeless(below.to_str().unwrap()), expected);
        let tensors: Vec<&[u8]> = file.tensors().map(|tensor| tensor.bytes).collect();
        let i = i as f32;
        assert_eq!(
            tensors,
            [
                floats(&[i]).host_bytes().unwrap(),
                floats(&[i, i + 1.0]).host_bytes().unwrap()
            ]
        );
    }
    let c = summary.counters;
    assert_eq!((c.n_files, c.n_bytes_written), (0, n_bytes));
}

#[test]
fn large_files_come_in_chunks_and_tables_in_one() {
    let of_size = |n_bytes: usize| {
        let shape = Shape::new([n_bytes]).unwrap();
        Tensor::from_vec(DType::U8, shape, vec![7; n_bytes]).unwrap()
    };
    let operators = [operator(0, "Add", "a", &[], &["y"])];
    let check = |content, tensor: Tensor, n_expected: u32| -> (PathBuf, Vec<u8>) {
        let received = Arc::new(Mutex::new(Received::default()));
        // The directory need not be there, nor the path be absolute.
        let sink = sink_into(&received, Path::new("gone")).with_content(content);
        with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
            execute(tap, &operators[0], &[], &[tensor]);
        });
        let files = std::mem::take(&mut received.lock().unwrap().files);
        let (path, (bytes, n_chunks)) = files.into_iter().next().unwrap();
        assert!(path.starts_with(std::env::current_dir().unwrap()));
        assert_eq!(n_chunks, n_expected);
        (path, bytes)
    };
    let n_bytes = CHUNK_BYTES_MAX + 5;
    let (_, bytes) = check(AclContent::Tensors, of_size(n_bytes), 2);
    assert!(bytes.ends_with(&[7, 7]) && bytes.len() > n_bytes);
    let (path, bytes) = check(AclContent::Statistics(StatsColumns::Plain), of_size(5), 1);
    assert!(path.to_str().unwrap().ends_with(".csv"));
    assert!(bytes.ends_with(b",7,7,7,5,0,0,0\n"));
}

#[test]
fn a_function_that_refuses_or_panics_is_counted() {
    let operators = [operator(0, "Add", "a", &[], &["y"])];
    let refuse = |_: &FileChunk<'_>| Err(SinkError::Other("no".into()));
    let explode = |_: &FileChunk<'_>| panic!("boom");
    let dir = Path::new("/d");
    for sink in [
        AclSink::to_function(dir, TIME, Arc::new(refuse)).unwrap(),
        AclSink::to_function(dir, TIME, Arc::new(explode)).unwrap(),
    ] {
        let summary = with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
            for _ in 0..3 {
                execute(tap, &operators[0], &[], &[floats(&[1.0])]);
            }
        });
        let c = summary.counters;
        // The first failure is the end; two writers may come to it at the same time.
        assert!(c.n_failed >= 1);
        assert_eq!(c.n_failed + c.dropped.n_stopped, 3);
        assert!(summary.first_error.is_some());
    }
}
