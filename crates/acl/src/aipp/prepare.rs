//! Converts the bytes of pictures to a model's input.
//!
//! Pictures are processed row by row in small buffers that stay in the cache, with loops over
//! slices that the compiler vectorises.

use half::f16;
use opscope_store::file_format::gears_json::AippInputFormat;
use opscope_tensor::{DType, Shape, Tensor};

use super::parameters::{AippItem, AippParameters, ColourConversion, Crop, Normalisation};

/// Processes consecutive pictures for an input with the axes batch, channels, height and width. The
/// parameters were checked against the shape.
///
/// # Errors
/// The reason: an unsupported dtype, too few bytes, or no memory.
pub(crate) fn prepare(
    parameters: &AippParameters,
    pictures: &[u8],
    dtype: DType,
    shape: Shape,
) -> Result<Tensor, String> {
    let n_bytes = shape.n_bytes(dtype).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    let room = out.try_reserve_exact(n_bytes);
    room.map_err(|_| format!("no memory for {n_bytes} bytes"))?;
    out.resize(n_bytes, 0);
    match dtype {
        DType::F32 => prepare_all::<f32>(parameters, pictures, shape.dims(), &mut out)?,
        DType::F16 => prepare_all::<f16>(parameters, pictures, shape.dims(), &mut out)?,
        DType::U8 => prepare_all::<u8>(parameters, pictures, shape.dims(), &mut out)?,
        _ => return Err(format!("AIPP does not support {dtype}")),
    }
    Tensor::from_vec(dtype, shape, out).map_err(|error| error.to_string())
}

/// An element type of a model's input.
trait PreparedElement {
    /// Bytes of an element.
    const BYTES: usize;
    /// A table or parameters that convert a channel's values to elements.
    type Conversion;

    fn conversion(normalisation: &Normalisation) -> Self::Conversion;

    fn write_row(conversion: &Self::Conversion, row: &[u8], out: &mut [u8]);

    /// The bytes of padding.
    fn fill(value: f32, out: &mut [u8]);
}

impl PreparedElement for f32 {
    const BYTES: usize = 4;
    type Conversion = Normalisation;

    fn conversion(normalisation: &Normalisation) -> Normalisation {
        *normalisation
    }

    fn write_row(conversion: &Normalisation, row: &[u8], out: &mut [u8]) {
        for (out, &value) in out.chunks_exact_mut(4).zip(row) {
            out.copy_from_slice(&conversion.apply(value).to_le_bytes());
        }
    }

    fn fill(value: f32, out: &mut [u8]) {
        for out in out.chunks_exact_mut(4) {
            out.copy_from_slice(&value.to_le_bytes());
        }
    }
}

impl PreparedElement for f16 {
    const BYTES: usize = 2;
    /// Rounding is slow without instructions for it, and a table of all values is small.
    type Conversion = [[u8; 2]; 256];

    fn conversion(normalisation: &Normalisation) -> [[u8; 2]; 256] {
        let mut table = [[0; 2]; 256];
        for (value, to) in (0..=u8::MAX).zip(&mut table) {
            *to = f16::from_f32(normalisation.apply(value)).to_le_bytes();
        }
        table
    }

    fn write_row(conversion: &[[u8; 2]; 256], row: &[u8], out: &mut [u8]) {
        for (out, &value) in out.chunks_exact_mut(2).zip(row) {
            out.copy_from_slice(&conversion[usize::from(value)]);
        }
    }

    fn fill(value: f32, out: &mut [u8]) {
        for out in out.chunks_exact_mut(2) {
            out.copy_from_slice(&f16::from_f32(value).to_le_bytes());
        }
    }
}

impl PreparedElement for u8 {
    const BYTES: usize = 1;
    /// Bytes are not normalised when the output is bytes, according to the vendor's documentation.
    type Conversion = ();

    fn conversion(_: &Normalisation) {}

    fn write_row((): &(), row: &[u8], out: &mut [u8]) {
        out.copy_from_slice(row);
    }

    fn fill(value: f32, out: &mut [u8]) {
        // Rust's conversion saturates at 0 and 255.
        out.fill(value as u8);
    }
}

/// The channels of one row.
type Rows = [Vec<u8>; 3];

fn prepare_all<T: PreparedElement>(
    parameters: &AippParameters,
    pictures: &[u8],
    dims: &[usize],
    out: &mut [u8],
) -> Result<(), String> {
    let &[n, channels, height, width] = dims else {
        return Err("AIPP needs an input with four axes".into());
    };
    let n_picture = parameters.picture_bytes();
    let n_found = parameters.items.len();
    if n_found < n || n_picture == 0 || pictures.len() / n_picture < n {
        let n_bytes = pictures.len();
        return Err(format!(
            "{n} pictures of {n_picture} bytes are needed, there are parameters for {n_found} and \
             {n_bytes} bytes"
        ));
    }
    let n_out = channels * height * width * T::BYTES;
    // An output of zero bytes cannot be split into chunks.
    if n_out == 0 {
        return Ok(());
    }
    let mut buffers = RowBuffers::new(parameters);
    let pictures = pictures.chunks_exact(n_picture);
    let all = pictures.zip(&parameters.items);
    for ((picture, item), out) in all.zip(out.chunks_exact_mut(n_out)) {
        buffers.prepare_one::<T>(parameters, picture, item, (channels, width), out);
    }
    Ok(())
}

/// Buffers for one row.
struct RowBuffers {
    unpacked: Rows,
    converted: Rows,
}

impl RowBuffers {
    fn new(parameters: &AippParameters) -> RowBuffers {
        // A crop is never wider than the picture.
        RowBuffers {
            unpacked: std::array::from_fn(|_| vec![0; parameters.width]),
            converted: std::array::from_fn(|_| vec![0; parameters.width]),
        }
    }

    /// Processes one picture; `out` holds the model's channels, plane by plane.
    fn prepare_one<T: PreparedElement>(
        &mut self,
        parameters: &AippParameters,
        picture: &[u8],
        item: &AippItem,
        (channels, width): (usize, usize),
        out: &mut [u8],
    ) {
        let part = parameters.part(item);
        let padding = &item.padding;
        let n_row = width * T::BYTES;
        let n_plane = out.len() / channels;
        let mut conversions: Vec<T::Conversion> = Vec::with_capacity(channels);
        for plane in 0..channels {
            conversions.push(T::conversion(&item.channels[plane.min(3)]));
        }
        // Without padding every element is overwritten below.
        if (part.width, part.height) != (width, n_plane / n_row) {
            T::fill(padding.value, out);
        }
        for row in 0..part.height {
            unpack_row(parameters, picture, part, row, &mut self.unpacked);
            let mut rows = &self.unpacked;
            if let Some(csc) = &parameters.csc {
                // A model with one channel needs only the first row of the matrix.
                let (unpacked, converted) = (&self.unpacked, &mut self.converted);
                for (channel, to) in converted.iter_mut().take(channels).enumerate() {
                    let is_yuv = parameters.format == AippInputFormat::Yuv420spU8;
                    convert_row(csc, is_yuv, channel, unpacked, &mut to[..part.width]);
                }
                rows = &self.converted;
            }
            let start = (padding.top + row) * n_row + padding.left * T::BYTES;
            let planes = out.chunks_exact_mut(n_plane);
            for ((plane, values), conversion) in planes.zip(rows).zip(&conversions) {
                let to = &mut plane[start..start + part.width * T::BYTES];
                T::write_row(conversion, &values[..part.width], to);
            }
        }
    }
}

/// Splits a row of the cropped part into channels.
fn unpack_row(
    parameters: &AippParameters,
    picture: &[u8],
    part: Crop,
    row: usize,
    rows: &mut Rows,
) {
    let (width, height) = (parameters.width, parameters.height);
    // Row numbers count within the crop and are converted to the whole picture.
    let row = part.top + row;
    match parameters.format {
        AippInputFormat::Undefined => {}
        AippInputFormat::Yuv400U8 => {
            let start = row * width + part.left;
            rows[0][..part.width].copy_from_slice(&picture[start..start + part.width]);
        }
        AippInputFormat::Yuv420spU8 => {
            let start = row * width + part.left;
            rows[0][..part.width].copy_from_slice(&picture[start..start + part.width]);
            // Two rows share a row of U and V; crops begin at even rows and columns.
            let start = width * height + row / 2 * width + part.left;
            let pairs = &picture[start..start + part.width.next_multiple_of(2)];
            let [_, u, v] = rows;
            unpack_pairs(pairs, &mut u[..part.width], &mut v[..part.width]);
            if parameters.rbuv_swap {
                rows.swap(1, 2);
            }
        }
        AippInputFormat::Rgb888U8 => {
            let start = (row * width + part.left) * 3;
            unpack_pixels::<3>(&picture[start..start + part.width * 3], 0, rows);
            if parameters.rbuv_swap {
                rows.swap(0, 2);
            }
        }
        AippInputFormat::Xrgb8888U8 => {
            let start = (row * width + part.left) * 4;
            let first = usize::from(parameters.ax_swap);
            unpack_pixels::<4>(&picture[start..start + part.width * 4], first, rows);
            if parameters.rbuv_swap {
                rows.swap(0, 2);
            }
        }
    }
}

/// Copies each U and V to the two pixels that share it.
fn unpack_pairs(pairs: &[u8], u: &mut [u8], v: &mut [u8]) {
    let (pairs, _) = pairs.as_chunks::<2>();
    // Chunks of a constant length let the compiler vectorise the loop.
    let (u, u_odd) = u.as_chunks_mut::<2>();
    let (v, v_odd) = v.as_chunks_mut::<2>();
    for ((pair, u), v) in pairs.iter().zip(u).zip(v) {
        *u = [pair[0]; 2];
        *v = [pair[1]; 2];
    }
    if let (Some(pair), [u], [v]) = (pairs.last(), u_odd, v_odd) {
        (*u, *v) = (pair[0], pair[1]);
    }
}

/// Extracts three channels from `first` on from pixels of `N` bytes.
fn unpack_pixels<const N: usize>(pixels: &[u8], first: usize, rows: &mut Rows) {
    // Zipped iterators avoid index checks.
    let [a, b, c] = rows;
    let rows = a.iter_mut().zip(b).zip(c);
    for (((a, b), c), pixel) in rows.zip(pixels.chunks_exact(N)) {
        *a = pixel[first];
        *b = pixel[first + 1];
        *c = pixel[first + 2];
    }
}

/// Computes one channel of another colour space. The vendor's documentation writes the division by
/// 256 as `>> 8`; its published operator rounds to nearest, halves up, and so does this.
fn convert_row(csc: &ColourConversion, is_yuv: bool, channel: usize, rows: &Rows, out: &mut [u8]) {
    let [x, y, z] = csc.matrix[channel];
    // From YUV the offsets are subtracted before the product, otherwise they are added after it.
    let (before, after) = if is_yuv {
        (csc.input_biases, 0)
    } else {
        ([0; 3], csc.output_biases[channel])
    };
    // The constant term of every pixel. Matrix elements have 16 bits, so nothing overflows.
    let constant = 128 - x * before[0] - y * before[1] - z * before[2];
    let rows = rows[0].iter().zip(&rows[1]).zip(&rows[2]);
    for (out, ((&a, &b), &c)) in out.iter_mut().zip(rows) {
        let sum = x * i32::from(a) + y * i32::from(b) + z * i32::from(c) + constant;
        *out = ((sum >> 8) + after).clamp(0, 255) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aipp::parameters::{Crop, Padding};

    fn parameters(format: AippInputFormat, width: usize, height: usize) -> AippParameters {
        AippParameters {
            format,
            width,
            height,
            ..AippParameters::new(1)
        }
    }

    fn floats(parameters: &AippParameters, picture: &[u8], dims: [usize; 4]) -> Vec<f32> {
        let shape = Shape::new(dims.to_vec()).unwrap();
        let tensor = prepare(parameters, picture, DType::F32, shape).unwrap();
        let bytes = tensor.host_bytes().unwrap();
        let words = bytes.chunks_exact(4);
        words
            .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }

    #[test]
    fn channels_lie_in_planes() {
        let picture = [1, 2, 3, 4, 5, 6];
        let mut rgb = parameters(AippInputFormat::Rgb888U8, 2, 1);
        let dims = [1, 3, 1, 2];
        assert_eq!(floats(&rgb, &picture, dims), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        rgb.rbuv_swap = true;
        assert_eq!(floats(&rgb, &picture, dims), [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);

        let picture = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut xrgb = parameters(AippInputFormat::Xrgb8888U8, 2, 1);
        assert_eq!(
            floats(&xrgb, &picture, dims),
            [1.0, 5.0, 2.0, 6.0, 3.0, 7.0]
        );
        xrgb.ax_swap = true;
        assert_eq!(
            floats(&xrgb, &picture, dims),
            [2.0, 6.0, 3.0, 7.0, 4.0, 8.0]
        );

        // Four pixels share a U and a V.
        let picture = [1, 2, 3, 4, 10, 20];
        let mut yuv = parameters(AippInputFormat::Yuv420spU8, 2, 2);
        let values = floats(&yuv, &picture, [1, 3, 2, 2]);
        assert_eq!(values[..4], [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values[4..8], [10.0; 4]);
        assert_eq!(values[8..], [20.0; 4]);
        yuv.rbuv_swap = true;
        assert_eq!(floats(&yuv, &picture, [1, 3, 2, 2])[4..8], [20.0; 4]);
    }

    #[test]
    fn what_is_added_is_not_normalised() {
        let mut grey = parameters(AippInputFormat::Yuv400U8, 3, 2);
        grey.items[0] = AippItem {
            crop: Some(Crop {
                left: 1,
                top: 1,
                width: 2,
                height: 1,
            }),
            padding: Padding {
                top: 1,
                right: 1,
                value: 7.5,
                ..Padding::default()
            },
            channels: [Normalisation {
                mean: 1.0,
                min: 0.5,
                factor: -2.0,
            }; 4],
            ..AippItem::default()
        };
        let picture = [0, 0, 0, 9, 10, 11];
        let values = floats(&grey, &picture, [1, 1, 2, 3]);
        assert_eq!(values, [7.5, 7.5, 7.5, -17.0, -19.0, 7.5]);
    }

    #[test]
    fn sums_of_colours_are_rounded_and_cut_off() {
        let mut rgb = parameters(AippInputFormat::Rgb888U8, 4, 1);
        let csc = ColourConversion {
            matrix: [[1, 0, 0], [-1, 0, 0], [256, 256, 0]],
            output_biases: [0, 2, 1],
            input_biases: [99, 99, 99],
        };
        rgb.csc = Some(csc);
        let picture = [127, 0, 0, 128, 0, 0, 129, 200, 0, 255, 0, 0];
        let values = floats(&rgb, &picture, [1, 3, 1, 4]);
        // Halves round up, on both sides of 0.
        assert_eq!(values[..4], [0.0, 1.0, 1.0, 1.0]);
        assert_eq!(values[4..8], [2.0, 2.0, 1.0, 1.0]);
        assert_eq!(values[8..], [128.0, 129.0, 255.0, 255.0]);
        // Only YUV uses the offsets to subtract, and only the others those to add.
        let mut yuv = parameters(AippInputFormat::Yuv420spU8, 2, 2);
        yuv.csc = Some(ColourConversion {
            matrix: [[256, 0, 0]; 3],
            output_biases: [50; 3],
            input_biases: [16, 128, 128],
        });
        let values = floats(&yuv, &[10, 16, 17, 255, 0, 0], [1, 1, 2, 2]);
        assert_eq!(values, [0.0, 0.0, 1.0, 239.0]);
    }

    #[test]
    fn other_dtypes_are_rounded_or_stay_bytes() {
        let mut grey = parameters(AippInputFormat::Yuv400U8, 2, 1);
        grey.items[0].channels[0] = Normalisation {
            mean: 3.0,
            min: 0.0,
            factor: 0.1,
        };
        let shape = || Shape::new(vec![1, 1, 1, 2]).unwrap();
        let halves = prepare(&grey, &[13, 255], DType::F16, shape()).unwrap();
        let expected = [f16::from_f32(10.0 * 0.1), f16::from_f32(252.0 * 0.1)];
        let expected: Vec<u8> = expected
            .iter()
            .flat_map(|half| half.to_le_bytes())
            .collect();
        assert_eq!(*halves.host_bytes().unwrap(), expected);
        let bytes = prepare(&grey, &[13, 255], DType::U8, shape()).unwrap();
        assert_eq!(*bytes.host_bytes().unwrap(), [13, 255]);
        assert!(prepare(&grey, &[13, 255], DType::I32, shape()).is_err());
        assert!(prepare(&grey, &[13], DType::F32, shape()).is_err());
    }
}
