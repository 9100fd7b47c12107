//! Reading a tensor in parts from its first element to its last, a piece at a time.

use opscope_store::record::parallel::Reduction;
use opscope_tensor::DType;

use super::reduce::Accumulator;
use super::tensor::{WholeTensor, index_of};
use crate::compare::side::LoadError;
use crate::elements::ElementWindows;

/// The tensors of the parts. The first access opens their files.
pub(super) struct PartFiles<'a> {
    whole: &'a WholeTensor,
    width: usize,
    opened: Vec<Option<ElementWindows>>,
}

/// Elements of a part that are contiguous in the whole.
#[derive(Clone, Copy)]
pub(super) struct PartRun {
    offset: u64,
    stride: u64,
    n: usize,
}

impl<'a> PartFiles<'a> {
    pub(super) fn new(whole: &'a WholeTensor) -> PartFiles<'a> {
        PartFiles {
            whole,
            width: whole.dtype.bytes().unwrap_or(1),
            opened: whole.parts.iter().map(|_| None).collect(),
        }
    }

    /// The `n` elements of a part from an index on, which is one of the axes taken together.
    pub(super) fn run(&self, part: usize, index: &[u64], n: usize) -> PartRun {
        let mut offset = 0;
        let mut stride = 1;
        for (segments, &index) in self.whole.segments[part].iter().zip(index) {
            let at = segments.partition_point(|segment| segment.first <= index);
            if let Some(segment) = at.checked_sub(1).map(|at| segments[at]) {
                offset += segment.offset_of(index);
                stride = segment.stride;
            }
        }
        PartRun { offset, stride, n }
    }

    /// Appends the elements of a run of a part.
    pub(super) fn append(
        &mut self,
        part: usize,
        run: PartRun,
        out: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        let width = self.width;
        let elements = self.open(part)?;
        // Sizes were checked against each other, so that nothing is ever beyond the end.
        let mut append = |first: u64, n: usize| {
            let begin = usize::try_from(first)
                .ok()
                .and_then(|i| i.checked_mul(width));
            let begin = begin.ok_or_else(|| {
                LoadError::Damaged("the part is shorter than its shape".to_owned())
            })?;
            out.extend_from_slice(elements.bytes(begin..begin + n * width)?);
            Ok(())
        };
        if run.stride == 1 || run.n == 1 {
            return append(run.offset, run.n);
        }
        (0..run.n as u64).try_for_each(|i| append(run.offset + i * run.stride, 1))
    }

    fn open(&mut self, part: usize) -> Result<&mut ElementWindows, LoadError> {
        let slot = &self.whole.parts[part].slot;
        let opened = &mut self.opened[part];
        if opened.is_none() {
            let elements = slot.windows()?;
            // The file may have become another since it was listed, and offsets would lead
            // elsewhere.
            let dims = elements.shape.dims().iter().map(|&dim| dim as u64);
            if elements.dtype != self.whole.dtype || !dims.eq(slot.shape.iter().flatten().copied())
            {
                return Err(LoadError::Damaged(format!(
                    "`{}` holds {} {}, which is not what the dump lists",
                    slot.path.display(),
                    elements.dtype,
                    elements.shape
                )));
            }
            *opened = Some(elements);
        }
        opened.as_mut().ok_or(LoadError::NoElements)
    }
}

/// Reads pieces of a whole.
pub(super) struct WholeReader<'a> {
    whole: &'a WholeTensor,
    files: PartFiles<'a>,
    /// Parts of which replicas are read instead.
    is_avoided: Vec<bool>,
    reduction: Option<Accumulator>,
    own: Vec<u8>,
}

impl<'a> WholeReader<'a> {
    /// Reads parts that are not avoided; `is_avoided` leaves one of each set of replicas.
    ///
    /// # Errors
    /// A message if contributions of the dtype cannot be reduced.
    pub(super) fn new(
        whole: &'a WholeTensor,
        is_avoided: Vec<bool>,
    ) -> Result<WholeReader<'a>, String> {
        // Division needs the same care as a mean.
        let divided = (whole.divisor > 1).then_some(Reduction::Sum);
        let reduction = match whole.reduction.or(divided) {
            None => None,
            Some(reduction) => {
                let found = Accumulator::new(reduction, whole.dtype, whole.divisor);
                Some(found.ok_or_else(|| {
                    let (dtype, name) = (whole.dtype, reduction.name());
                    format!("contributions of {dtype} have no {name}")
                })?)
            }
        };
        Ok(WholeReader {
            whole,
            files: PartFiles::new(whole),
            is_avoided,
            reduction,
            own: Vec::new(),
        })
    }

    pub(super) fn dtype(&self) -> DType {
        self.whole.dtype
    }

    /// Appends the bytes of `n` elements from `first` on. They have to be there.
    pub(super) fn read(
        &mut self,
        first: u64,
        n: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        let end = first + n as u64;
        // A run ends where another part begins, or a row of the part does.
        let mut at = first;
        while at < end {
            at += self.read_run(at, (end - at) as usize, out)? as u64;
        }
        Ok(())
    }

    /// Appends elements up to the next boundary of a part, at most `n`, and returns their number.
    fn read_run(&mut self, at: u64, n: usize, out: &mut Vec<u8>) -> Result<usize, LoadError> {
        let whole = self.whole;
        let index = index_of(&whole.dims, at);
        let cell = &whole.grid.cells[whole.grid.cell_at(&index)];
        let n = match (whole.grid.bounds.last(), index.last()) {
            (Some(bounds), Some(&last)) => {
                let next = bounds[bounds.partition_point(|&bound| bound <= last)];
                n.min((next - last) as usize)
            }
            // A single element without axes.
            _ => 1,
        };
        let contribution = |part: u32| whole.parts[part as usize].contribution;
        for replicas in cell.chunk_by(|a, b| contribution(*a) == contribution(*b)) {
            // One replica represents all; whether they agree is checked separately.
            let mut read = replicas.iter().copied();
            let part = read.find(|&part| !self.is_avoided[part as usize]);
            let part = part.unwrap_or(replicas[0]) as usize;
            let run = self.files.run(part, &index, n);
            match &mut self.reduction {
                None => self.files.append(part, run, out)?,
                Some(reduction) => {
                    // Contributions are added where they lie one behind the other.
                    self.own.clear();
                    self.files.append(part, run, &mut self.own)?;
                    reduction.add(&self.own);
                }
            }
        }
        if let Some(reduction) = &mut self.reduction {
            reduction.take(out);
        }
        Ok(n)
    }
}
