//! C structures.

use std::ffi::c_char;

use opscope_acl::{AippInfo, AippShape, Answer, NamedDims, status};

/// Maximum number of dimensions, and the size of most lists.
pub(crate) const AXES_MAX: usize = 128;
/// Bytes of a tensor's name, with its NUL.
const NAME_SIZE: usize = 128;

/// `aclmdlIODims`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IoDims {
    name: [c_char; NAME_SIZE],
    count: usize,
    dims: [i64; AXES_MAX],
}

impl IoDims {
    /// # Errors
    /// `STORAGE_OVER_LIMIT` for more dimensions than fit.
    pub(crate) fn new(dims: &NamedDims) -> Answer<IoDims> {
        let mut out = IoDims {
            name: filled(&dims.name),
            count: dims.dims.len(),
            dims: [0; AXES_MAX],
        };
        let room = out.dims.get_mut(..dims.dims.len());
        let room = room.ok_or(status::STORAGE_OVER_LIMIT)?;
        room.copy_from_slice(&dims.dims);
        Ok(out)
    }

    /// The dimensions, if their number is valid.
    pub(crate) fn dims(&self) -> Answer<&[i64]> {
        self.dims.get(..self.count).ok_or(status::INVALID_PARAM)
    }
}

/// `aclmdlIODimsRange`
#[repr(C)]
pub(crate) struct IoDimsRange {
    count: usize,
    ranges: [[i64; 2]; AXES_MAX],
}

impl IoDimsRange {
    pub(crate) fn new(ranges: &[(i64, i64)]) -> Answer<IoDimsRange> {
        if ranges.len() > AXES_MAX {
            return Err(status::STORAGE_OVER_LIMIT);
        }
        let mut out = IoDimsRange {
            count: ranges.len(),
            ranges: [[0; 2]; AXES_MAX],
        };
        for (to, &(least, most)) in out.ranges.iter_mut().zip(ranges) {
            *to = [least, most];
        }
        Ok(out)
    }
}

/// `aclmdlBatch`
#[repr(C)]
pub(crate) struct BatchSizes {
    count: usize,
    sizes: [u64; AXES_MAX],
}

impl BatchSizes {
    /// # Errors
    /// `STORAGE_OVER_LIMIT` for more gears than fit.
    pub(crate) fn new(sizes: &[u64]) -> Answer<BatchSizes> {
        let mut out = BatchSizes {
            count: sizes.len(),
            sizes: [0; AXES_MAX],
        };
        let room = out.sizes.get_mut(..sizes.len());
        room.ok_or(status::STORAGE_OVER_LIMIT)?
            .copy_from_slice(sizes);
        Ok(out)
    }
}

/// `aclmdlHW`
#[repr(C)]
pub(crate) struct HeightWidth {
    count: usize,
    sizes: [[u64; 2]; AXES_MAX],
}

impl HeightWidth {
    /// # Errors
    /// `STORAGE_OVER_LIMIT` for more gears than fit.
    pub(crate) fn new(sizes: &[[u64; 2]]) -> Answer<HeightWidth> {
        let mut out = HeightWidth {
            count: sizes.len(),
            sizes: [[0; 2]; AXES_MAX],
        };
        let room = out.sizes.get_mut(..sizes.len());
        room.ok_or(status::STORAGE_OVER_LIMIT)?
            .copy_from_slice(sizes);
        Ok(out)
    }
}

/// `aclAippInfo` up to its list of shapes.
#[repr(C)]
pub(crate) struct AippInfoHead {
    input_format: i32,
    src_image_size: [i32; 2],
    crop: i8,
    load_start_pos: [i32; 2],
    crop_size: [i32; 2],
    resize: i8,
    resize_output: [i32; 2],
    padding: i8,
    padding_sizes: [i32; 4],
    csc: i8,
    rbuv_swap: i8,
    ax_swap: i8,
    single_line_mode: i8,
    matrix: [i32; 9],
    output_biases: [i32; 3],
    input_biases: [i32; 3],
    means: [i32; 4],
    minima: [f32; 4],
    factors: [f32; 4],
    src_format: i32,
    src_data_type: i32,
    src_n_dims: usize,
    n_shapes: usize,
}

impl AippInfoHead {
    pub(crate) fn new(info: &AippInfo) -> AippInfoHead {
        AippInfoHead {
            input_format: info.input_format,
            src_image_size: info.src_image_size,
            crop: info.crop.into(),
            load_start_pos: info.load_start_pos,
            crop_size: info.crop_size,
            // The vendor reserves scaling, and configurations with it are refused.
            resize: 0,
            resize_output: [0; 2],
            padding: info.padding.into(),
            padding_sizes: info.padding_sizes,
            csc: info.csc.into(),
            rbuv_swap: info.rbuv_swap.into(),
            ax_swap: info.ax_swap.into(),
            single_line_mode: 0,
            matrix: info.matrix,
            output_biases: info.output_biases,
            input_biases: info.input_biases,
            means: info.means,
            minima: info.minima,
            factors: info.factors,
            src_format: info.src_format,
            src_data_type: info.src_data_type,
            src_n_dims: info.src_n_dims,
            n_shapes: info.shapes.len(),
        }
    }
}

/// `aclAippDims`
#[repr(C)]
pub(crate) struct AippDims {
    src: IoDims,
    src_size: usize,
    out: IoDims,
    out_size: usize,
}

impl AippDims {
    /// The result of AIPP is the model's input, so both halves are the same.
    ///
    /// # Errors
    /// As for [`IoDims::new`].
    pub(crate) fn new(shape: &AippShape) -> Answer<AippDims> {
        let dims = IoDims::new(&shape.dims)?;
        Ok(AippDims {
            src: dims,
            src_size: shape.n_bytes,
            out: dims,
            out_size: shape.n_bytes,
        })
    }
}

/// `acldumpChunk`, whose data begins before the structure ends.
#[repr(C)]
pub(crate) struct DumpChunk {
    name: [c_char; DumpChunk::NAME_BYTES_MAX + 1],
    pub(crate) n_bytes: u32,
    pub(crate) is_last: u32,
    pub(crate) offset: i64,
    flag: i32,
}

impl DumpChunk {
    /// Maximum length of a name, without its NUL.
    pub(crate) const NAME_BYTES_MAX: usize = 4095;
    /// Offset of the data.
    pub(crate) const DATA: usize = std::mem::offset_of!(DumpChunk, flag) + 4;
}

/// `acldumpTensorInfo`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ExceptionTensorInfo {
    pub(crate) kind: i32,
    pub(crate) size: usize,
    pub(crate) format: i32,
    pub(crate) data_type: i32,
    pub(crate) address: usize,
    pub(crate) address_kind: i32,
    pub(crate) placement: i32,
    pub(crate) args_offset: u32,
    pub(crate) shape_num: u32,
    pub(crate) origin_shape_num: u32,
    pub(crate) shape: [u64; 25],
    pub(crate) origin_shape: [u64; 25],
}

/// `aclrtErrorInfo`
#[repr(C)]
pub(crate) struct DeviceError {
    try_repair: u8,
    has_detail: u8,
    reserved: [u8; 2],
    kind: i32,
    n_addresses: usize,
    /// An address, a length and 14 reserved words each.
    addresses: [[usize; 16]; 20],
}

impl DeviceError {
    /// `ACL_RT_NO_ERROR`
    pub(crate) const NONE: DeviceError = DeviceError {
        try_repair: 0,
        has_detail: 0,
        reserved: [0; 2],
        kind: 0,
        n_addresses: 0,
        addresses: [[0; 16]; 20],
    };
}

/// `aclCANNPackageVersion`
#[repr(C)]
pub(crate) struct PackageVersion {
    version: [c_char; PackageVersion::VERSION_SIZE],
    major: [c_char; 64],
    minor: [c_char; 64],
    release: [c_char; 64],
    patch: [c_char; 64],
    reserved: [c_char; 128],
}

impl PackageVersion {
    /// Size of a version string, with its NUL.
    pub(crate) const VERSION_SIZE: usize = 128;

    pub(crate) fn new(version: &str) -> PackageVersion {
        let mut parts = version.split('.');
        let mut part = || filled(parts.next().unwrap_or_default());
        PackageVersion {
            version: filled(version),
            major: part(),
            minor: part(),
            release: part(),
            patch: part(),
            reserved: [0; 128],
        }
    }
}

/// A string with at least one NUL.
fn filled<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    // The last byte stays 0.
    for (to, byte) in out.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = byte.cast_signed() as c_char;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The sizes that a C compiler computes from the headers; `tests/programs/layout.c` compares
    /// them.
    #[test]
    fn sizes_are_those_of_the_headers() {
        assert_eq!(size_of::<IoDims>(), 128 + 8 + 128 * 8);
        assert_eq!(size_of::<IoDimsRange>(), 8 + 128 * 16);
        assert_eq!(size_of::<BatchSizes>(), 8 + 128 * 8);
        assert_eq!(size_of::<HeightWidth>(), 8 + 128 * 16);
        assert_eq!(size_of::<AippDims>(), 2 * (1160 + 8));
        assert_eq!(size_of::<AippInfoHead>(), 200);
        assert_eq!(size_of::<DumpChunk>(), 4120);
        assert_eq!(DumpChunk::DATA, 4116);
        assert_eq!(offset_of!(DumpChunk, offset), 4104);
        assert_eq!(size_of::<ExceptionTensorInfo>(), 456);
        assert_eq!(size_of::<DeviceError>(), 8 + 8 + 20 * 128);
        assert_eq!(size_of::<PackageVersion>(), 128 + 4 * 64 + 128);
        assert_eq!(offset_of!(ExceptionTensorInfo, shape), 56);
    }

    #[test]
    fn a_long_name_is_cut_and_ends() {
        let dims = NamedDims {
            name: "x".repeat(200),
            dims: vec![1, -1],
        };
        let out = IoDims::new(&dims).unwrap();
        assert_eq!(out.name.iter().position(|&byte| byte == 0), Some(127));
        assert_eq!(out.dims(), Ok(&[1, -1][..]));
    }

    #[test]
    fn a_version_is_given_whole_and_in_parts() {
        let version = PackageVersion::new("8.5.0");
        let text = |field: &[c_char]| -> String {
            let bytes = field.iter().take_while(|&&byte| byte != 0);
            bytes.map(|&byte| char::from(byte as u8)).collect()
        };
        assert_eq!(text(&version.version), "8.5.0");
        let parts = [
            &version.major,
            &version.minor,
            &version.release,
            &version.patch,
        ];
        assert_eq!(parts.map(|part| text(part)), ["8", "5", "0", ""]);
    }

    #[test]
    fn more_axes_than_room_are_refused() {
        let dims = |n| NamedDims {
            name: String::new(),
            dims: vec![1; n],
        };
        assert!(IoDims::new(&dims(128)).is_ok());
        assert_eq!(
            IoDims::new(&dims(129)).map(|dims| dims.count),
            Err(status::STORAGE_OVER_LIMIT)
        );
        assert!(IoDimsRange::new(&[(1, 1); 129]).is_err());
    }
}
