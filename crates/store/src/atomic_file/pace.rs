//! Through the page cache, or past it.
//!
//! A write through the page cache is a copy in memory as long as there are free pages, and slower
//! than the disk itself once pages have to be found or cleaned first. Which of the two it is
//! differs from machine to machine and changes while a dump grows, so it is measured: large files
//! go past the cache (`O_DIRECT`) while that is the faster way.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::write_all_vectored;

/// Shorter files always go through the cache.
pub(super) const N_BYTES_MIN: usize = 256 << 10;
/// Alignment that file systems ask of addresses, lengths and offsets past the cache.
const ALIGN: usize = 4096;
/// Number of bytes that are written at once past the cache.
const N_CHUNK_BYTES: usize = 1 << 20;
/// The cache is given up no sooner than it is slower than this, in seconds for a byte: 1 GB/s.
const SLOW: f64 = 1e-9;
/// Number of files after which the other way is tried.
const N_FILES_BEFORE_TRIAL: u32 = 32;
/// Weight of the latest file in the average.
const WEIGHT: f64 = 0.25;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathToDisk {
    Cached,
    Direct,
}

/// Seconds for a byte, either way.
#[derive(Debug, Default)]
pub(super) struct WritePace(Mutex<PathCosts>);

#[derive(Debug, Default)]
struct PathCosts {
    cached: Option<f64>,
    direct: Option<f64>,
    is_impossible: bool,
    n_files: u32,
}

impl PathCosts {
    fn choose(&mut self) -> PathToDisk {
        let Some(cached) = self.cached.filter(|_| !self.is_impossible) else {
            return PathToDisk::Cached;
        };
        self.n_files += 1;
        let is_trial = self.n_files.is_multiple_of(N_FILES_BEFORE_TRIAL);
        let is_direct_faster = match self.direct {
            None => cached > SLOW,
            Some(direct) => direct < cached,
        };
        // A cache that keeps up is not compared with anything.
        if is_direct_faster != (is_trial && (is_direct_faster || cached > SLOW)) {
            PathToDisk::Direct
        } else {
            PathToDisk::Cached
        }
    }

    fn note(&mut self, way: PathToDisk, cost: f64) {
        let average = match way {
            PathToDisk::Cached => &mut self.cached,
            PathToDisk::Direct => &mut self.direct,
        };
        *average = Some(average.map_or(cost, |old| old + WEIGHT * (cost - old)));
    }
}

impl WritePace {
    /// Writes `parts` into the empty `file`.
    pub(super) fn write(&self, file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
        let n_bytes: usize = parts.iter().map(|part| part.len()).sum();
        if n_bytes < N_BYTES_MIN {
            return write_all_vectored(file, parts);
        }
        let start = Instant::now();
        let mut way = self.with(PathCosts::choose);
        if way == PathToDisk::Direct && !write_direct(file, parts)? {
            self.with(|costs| costs.is_impossible = true);
            // Part of it went through the cache, so the time does not count for direct writes.
            way = PathToDisk::Cached;
        } else if way == PathToDisk::Cached {
            write_all_vectored(file, parts)?;
        }
        let cost = start.elapsed().as_secs_f64() / n_bytes as f64;
        self.with(|costs| costs.note(way, cost));
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&mut PathCosts) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes `parts` past the cache, except for what does not fill a block. Returns `false` if the
/// file system would not have it; everything is written all the same.
fn write_direct(file: &mut File, parts: &[&[u8]]) -> io::Result<bool> {
    let flags = fcntl_getfl(&*file)?;
    if fcntl_setfl(&*file, flags | OFlags::DIRECT).is_err() {
        return write_all_vectored(file, parts).map(|()| false);
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(N_CHUNK_BYTES + ALIGN, 0);
        // `align_offset` may give up with `usize::MAX`. The file system then refuses the address,
        // and the cache takes the bytes.
        let start = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
        let buffer = &mut buffer[start..start + N_CHUNK_BYTES];
        let mut is_direct = true;
        let mut n_held = 0;
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let n = rest.len().min(N_CHUNK_BYTES - n_held);
                buffer[n_held..n_held + n].copy_from_slice(&rest[..n]);
                (n_held, rest) = (n_held + n, &rest[n..]);
                if n_held == N_CHUNK_BYTES {
                    is_direct &= write_blocks(file, buffer, flags)?;
                    n_held = 0;
                }
            }
        }
        let (blocks, end) = buffer[..n_held].split_at(n_held / ALIGN * ALIGN);
        is_direct &= write_blocks(file, blocks, flags)?;
        fcntl_setfl(&*file, flags)?;
        file.write_all(end)?;
        Ok(is_direct)
    })
}

/// Writes whole blocks; `false` if the cache had to be used after all.
fn write_blocks(file: &mut File, mut blocks: &[u8], flags: OFlags) -> io::Result<bool> {
    while !blocks.is_empty() {
        match file.write(blocks) {
            // The rest must begin at a block boundary again.
            Ok(n) if n > 0 && n % ALIGN == 0 => blocks = &blocks[n..],
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                fcntl_setfl(&*file, flags)?;
                return file.write_all(&blocks[n..]).map(|()| false);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Some file systems accept the flag and refuse the write.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                fcntl_setfl(&*file, flags)?;
                return file.write_all(blocks).map(|()| false);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic_file::file_holds;

    #[test]
    fn every_length_arrives_past_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3 * N_CHUNK_BYTES).map(|i| (i / 13) as u8).collect();
        let lengths = [0, 1, 4095, 4096, 4097, N_CHUNK_BYTES, 3 * N_CHUNK_BYTES];
        for head in [0, 1, 128, 4096] {
            for n in lengths {
                let parts: [&[u8]; 3] = [&bytes[..head], &[], &bytes[head / 2..n.max(head / 2)]];
                let path = dir.path().join(format!("{head}-{n}"));
                let mut file = File::create_new(&path).unwrap();
                write_direct(&mut file, &parts).unwrap();
                assert!(file_holds(&path, &parts).unwrap(), "{head} {n}");
                assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::DIRECT));
            }
        }
    }

    #[test]
    fn the_faster_way_is_chosen_and_the_other_one_tried_now_and_then() {
        // Cost of each way, and how many of 320 files go past the cache.
        let cases = [
            (0.2e-9, 0.1e-9, 0..=0),
            (3e-9, 0.5e-9, 300..=312),
            (3e-9, 5e-9, 8..=12),
        ];
        for (cached, direct, expected) in cases {
            let mut costs = PathCosts::default();
            let mut n_direct = 0;
            for _ in 0..320 {
                let way = costs.choose();
                n_direct += u32::from(way == PathToDisk::Direct);
                costs.note(
                    way,
                    if way == PathToDisk::Direct {
                        direct
                    } else {
                        cached
                    },
                );
            }
            assert!(
                expected.contains(&n_direct),
                "{cached} {direct}: {n_direct}"
            );
        }
        let mut costs = PathCosts {
            is_impossible: true,
            ..PathCosts::default()
        };
        costs.note(PathToDisk::Cached, 1.0);
        assert!((0..100).all(|_| costs.choose() == PathToDisk::Cached));
    }
}
