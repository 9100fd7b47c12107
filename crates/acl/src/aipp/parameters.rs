//! The AIPP parameters for the pictures of a batch.

use opscope_store::file_format::gears_json::{AippInputFormat, AippOp};

/// Maximum number of pictures in a batch; no model takes more.
pub(crate) const ITEMS_MAX: usize = 1 << 16;
/// Maximum width of a padded picture, according to the vendor's documentation.
const PADDED_WIDTH_MAX: usize = 1080;

/// The parameters for the pictures of a batch, in the order of application: channel swap, crop,
/// colour conversion, normalisation, padding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AippParameters {
    /// The pixel format; `Undefined` until a program sets it.
    pub(crate) format: AippInputFormat,
    /// Pixels in a row; 0 until a program sets it.
    pub(crate) width: usize,
    /// Rows; 0 until a program sets it.
    pub(crate) height: usize,
    /// Whether R and B, or U and V, are swapped.
    pub(crate) rbuv_swap: bool,
    /// Whether the first of four channels is dropped rather than the last.
    pub(crate) ax_swap: bool,
    pub(crate) csc: Option<ColourConversion>,
    /// The parameters that may differ between pictures, one entry for each.
    pub(crate) items: Vec<AippItem>,
}

/// A matrix and offsets for colour space conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColourConversion {
    pub(crate) matrix: [[i32; 3]; 3],
    pub(crate) output_biases: [i32; 3],
    pub(crate) input_biases: [i32; 3],
}

/// The parameters for one picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AippItem {
    pub(crate) crop: Option<Crop>,
    /// Whether the program requests scaling, which neither the vendor nor Opscope supports.
    pub(crate) is_scaled: bool,
    pub(crate) padding: Padding,
    /// For each channel; the fourth exists only in the interface.
    pub(crate) channels: [Normalisation; 4],
}

/// The cropped part of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crop {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Added rows and columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Padding {
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// Their value, which is not normalised.
    pub(crate) value: f32,
}

/// `(x - mean - min) * factor`, for a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normalisation {
    pub(crate) mean: f32,
    pub(crate) min: f32,
    pub(crate) factor: f32,
}

impl Default for Normalisation {
    fn default() -> Self {
        Normalisation {
            mean: 0.0,
            min: 0.0,
            factor: 1.0,
        }
    }
}

impl Normalisation {
    /// The value in the model's input. Means are integers, so the first difference is exact.
    pub(crate) fn apply(&self, value: u8) -> f32 {
        (f32::from(value) - self.mean - self.min) * self.factor
    }
}

/// Bytes of a picture; 0 without a format.
pub(crate) fn picture_bytes(format: AippInputFormat, width: usize, height: usize) -> usize {
    let n_pixels = width * height;
    match format {
        AippInputFormat::Undefined => 0,
        AippInputFormat::Yuv400U8 => n_pixels,
        AippInputFormat::Yuv420spU8 => n_pixels + n_pixels / 2,
        AippInputFormat::Rgb888U8 => n_pixels * 3,
        AippInputFormat::Xrgb8888U8 => n_pixels * 4,
    }
}

impl AippParameters {
    /// Initial parameters for `n` pictures.
    pub(crate) fn new(n: usize) -> AippParameters {
        AippParameters {
            format: AippInputFormat::Undefined,
            width: 0,
            height: 0,
            rbuv_swap: false,
            ax_swap: false,
            csc: None,
            items: vec![AippItem::default(); n],
        }
    }

    /// The parameters from a file, for `n` pictures of a model with input size `own`, width and
    /// height. The file has checked them.
    pub(crate) fn from_file(op: &AippOp, n: usize, own: (u64, u64)) -> AippParameters {
        let (width, height) = op.source_size(own);
        let crop = op.crop.then(|| {
            let (width, height) = op.crop_size(own);
            Crop {
                left: from_i32(op.load_start_pos_w),
                top: from_i32(op.load_start_pos_h),
                width: from_u64(width),
                height: from_u64(height),
            }
        });
        // Numbers of disabled steps do not count.
        let mut padding = Padding::default();
        if op.padding {
            padding = Padding {
                top: from_i32(op.top_padding_size),
                bottom: from_i32(op.bottom_padding_size),
                left: from_i32(op.left_padding_size),
                right: from_i32(op.right_padding_size),
                value: op.padding_value,
            };
        }
        let (means, minima, factors) = (op.means(), op.minima(), op.factors());
        let channels = std::array::from_fn(|i| Normalisation {
            mean: means[i] as f32,
            min: minima[i],
            factor: factors[i],
        });
        let item = AippItem {
            crop,
            is_scaled: false,
            padding,
            channels,
        };
        let [a, b, c, d, e, f, g, h, i] = op.matrix();
        AippParameters {
            format: op.input_format,
            width: from_u64(width),
            height: from_u64(height),
            rbuv_swap: op.rbuv_swap_switch,
            ax_swap: op.ax_swap_switch,
            csc: op.csc_switch.then_some(ColourConversion {
                matrix: [[a, b, c], [d, e, f], [g, h, i]],
                output_biases: op.output_biases(),
                input_biases: op.input_biases(),
            }),
            items: vec![item; n],
        }
    }

    /// Bytes of one picture.
    pub(crate) fn picture_bytes(&self) -> usize {
        picture_bytes(self.format, self.width, self.height)
    }

    /// The part of a picture that is used: all of it without a crop.
    pub(crate) fn part(&self, item: &AippItem) -> Crop {
        item.crop.unwrap_or(Crop {
            left: 0,
            top: 0,
            width: self.width,
            height: self.height,
        })
    }

    /// Width and height of a processed picture.
    pub(crate) fn output_size(&self, item: &AippItem) -> (usize, usize) {
        let part = self.part(item);
        let padding = &item.padding;
        (
            part.width + padding.left + padding.right,
            part.height + padding.top + padding.bottom,
        )
    }

    /// Checks the combination of parameters. Single values were checked when they were set.
    ///
    /// # Errors
    /// A description of the first contradiction.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.format == AippInputFormat::Undefined {
            return Err("no format is set: call aclmdlSetAIPPInputFormat".into());
        }
        if self.width == 0 || self.height == 0 {
            return Err("no size of pictures is set: call aclmdlSetAIPPSrcImageSize".into());
        }
        let is_halved = self.format == AippInputFormat::Yuv420spU8;
        if is_halved && (is_odd(self.width) || is_odd(self.height)) {
            let (width, height) = (self.width, self.height);
            return Err(format!(
                "YUV420SP_U8 pictures have an even width and height, {width}x{height} is set"
            ));
        }
        if self.format == AippInputFormat::Yuv400U8 && self.csc.is_some() {
            return Err("YUV400_U8 pictures have no colours to convert".into());
        }
        for (i, item) in self.items.iter().enumerate() {
            let checked = self.check_item(item);
            checked.map_err(|reason| format!("picture {i}: {reason}"))?;
        }
        Ok(())
    }

    fn check_item(&self, item: &AippItem) -> Result<(), String> {
        if item.is_scaled {
            return Err("scaling is not supported, as by the vendor".into());
        }
        let part = self.part(item);
        if part.left + part.width > self.width || part.top + part.height > self.height {
            let (width, height) = (self.width, self.height);
            return Err(format!(
                "the part of {}x{} pixels from column {} and row {} on is not inside {width}x{height}",
                part.width, part.height, part.left, part.top
            ));
        }
        let is_halved = self.format == AippInputFormat::Yuv420spU8;
        if is_halved && (is_odd(part.left) || is_odd(part.top)) {
            let (left, top) = (part.left, part.top);
            return Err(format!(
                "of YUV420SP_U8 pictures the part begins at an even column and row, not {left} and \
                 {top}"
            ));
        }
        let size = self.output_size(item);
        // The limit is one of padding: wide pictures without padding pass.
        let is_padded = size != (part.width, part.height);
        if is_padded && size.0 > PADDED_WIDTH_MAX {
            let width = size.0;
            return Err(format!(
                "padding makes it {width} pixels wide, at most {PADDED_WIDTH_MAX} are allowed"
            ));
        }
        // They form one tensor of the model.
        let first = self.items.first().map(|first| self.output_size(first));
        if first != Some(size) {
            return Err("its processed size differs from that of the first one".into());
        }
        Ok(())
    }

    /// Checks that the processed pictures match the model: `channels` of `size`, width and height.
    ///
    /// # Errors
    /// A description of the difference.
    pub(crate) fn check_fit(&self, channels: usize, size: (usize, usize)) -> Result<(), String> {
        let is_grey = self.format == AippInputFormat::Yuv400U8;
        // Colour conversion can also compute the only channel of a grey picture.
        if is_grey != (channels == 1) && !(channels == 1 && self.csc.is_some()) {
            return Err(format!(
                "the model takes {channels} channels, which pictures of this format do not have{}",
                if is_grey {
                    ""
                } else {
                    " without colour conversion"
                }
            ));
        }
        let found = self.items.first().map(|first| self.output_size(first));
        match found {
            Some(found) if found != size => Err(format!(
                "processed pictures have {}x{} pixels, the model takes {}x{}",
                found.0, found.1, size.0, size.1
            )),
            _ => Ok(()),
        }
    }
}

fn is_odd(n: usize) -> bool {
    !n.is_multiple_of(2)
}

fn from_i32(n: i32) -> usize {
    usize::try_from(n).unwrap_or(0)
}

fn from_u64(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
