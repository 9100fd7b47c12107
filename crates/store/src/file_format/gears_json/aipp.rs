//! AIPP of a model's input, under the vendor's keys.
//!
//! The keys are those of the vendor's file for inserted operators (`--insert_op_conf`), so that a
//! user finds every line again. Their meaning: `docs/acl/process.md`.

use serde::{Deserialize, Serialize};

use super::{Mistake, mistake};

/// Widest and highest picture.
const EXTENT_MAX: i32 = 4096;
/// Maximum number of rows or columns of padding on a side.
const PADDING_MAX: i32 = 32;
/// Range of an element of the matrix, as the vendor's documents have it.
const MATRIX_RANGE: (i32, i32) = (-32_677, 32_676);
/// The largest finite float16, in which the vendor keeps factors and padding.
const FLOAT16_MAX: f32 = 65_504.0;
/// The matrix from YUV to BGR of BT.601, with which YUV pictures are converted by default.
const YUV_MATRIX: [i32; 9] = [298, 516, 0, 298, -100, -208, 298, 0, 409];
/// The matrix from RGB to YUV of BT.601, with which other pictures are converted by default.
const RGB_MATRIX: [i32; 9] = [66, 129, 25, -38, -74, 112, 112, -94, -18];
/// Offsets that are subtracted from Y, U and V by default, and added to them.
const BIASES: [i32; 3] = [16, 128, 128];

/// When the parameters of AIPP are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AippMode {
    /// The file does not say, which is refused.
    #[default]
    Undefined,
    /// When the model is converted: the file has them.
    Static,
    /// When the model runs: the program sets them.
    Dynamic,
}

/// How the bytes of a picture lie, under the vendor's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AippInputFormat {
    /// The file does not say.
    #[default]
    #[serde(rename = "UNDEFINED")]
    Undefined,
    /// A plane of Y, then one of U and V in turn, of half the height and half the width.
    #[serde(rename = "YUV420SP_U8")]
    Yuv420spU8,
    /// Pixels of four bytes.
    #[serde(rename = "XRGB8888_U8")]
    Xrgb8888U8,
    /// Pixels of three bytes.
    #[serde(rename = "RGB888_U8")]
    Rgb888U8,
    /// A plane of Y.
    #[serde(rename = "YUV400_U8")]
    Yuv400U8,
}

impl AippInputFormat {
    /// The vendor's name.
    pub fn name(self) -> &'static str {
        match self {
            AippInputFormat::Undefined => "UNDEFINED",
            AippInputFormat::Yuv420spU8 => "YUV420SP_U8",
            AippInputFormat::Xrgb8888U8 => "XRGB8888_U8",
            AippInputFormat::Rgb888U8 => "RGB888_U8",
            AippInputFormat::Yuv400U8 => "YUV400_U8",
        }
    }

    /// The number in the vendor's `aclAippInputFormat`.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The format of a number; `None` for formats that AIPP does not prepare.
    pub fn from_number(number: i32) -> Option<AippInputFormat> {
        [
            AippInputFormat::Yuv420spU8,
            AippInputFormat::Xrgb8888U8,
            AippInputFormat::Rgb888U8,
            AippInputFormat::Yuv400U8,
        ]
        .into_iter()
        .find(|format| format.number() == number)
    }
}

/// A structure with optional members, and the list of their names.
macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $type:ty,)*) => {
        /// How AIPP prepares an input. A key that a file leaves out has the default of its type;
        /// methods give what holds instead.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct AippOp {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_default")] pub $key: $type,)*
        }

        impl AippOp {
            /// The keys.
            pub const KEYS: &[&str] = &[$(stringify!($key)),*];
        }
    };
}

keys! {
    /// When the parameters are known.
    aipp_mode: AippMode,
    /// The input's position among those of the model.
    related_input_rank: u32,
    /// The input's name, which counts more than its position.
    related_input_name: String,
    /// Bytes of the largest pictures of a batch, if the program sets the parameters.
    max_src_image_size: u32,
    /// Reserved.
    support_rotation: bool,
    /// How the bytes of pictures lie.
    input_format: AippInputFormat,
    /// Whether colours are converted.
    csc_switch: bool,
    /// Reserved.
    cpadding_value: f32,
    /// Whether R and B, or U and V, change places.
    rbuv_swap_switch: bool,
    /// Whether the first of four channels is skipped, and not the last.
    ax_swap_switch: bool,
    /// Reserved.
    single_line_mode: bool,
    /// Pixels in a row of pictures; 0 for as many as the model takes.
    src_image_size_w: i32,
    /// Rows of pictures; 0 for as many as the model takes.
    src_image_size_h: i32,
    /// Whether a part of the picture is cut out.
    crop: bool,
    /// The part's first column.
    load_start_pos_w: i32,
    /// The part's first row.
    load_start_pos_h: i32,
    /// Columns of the part; 0 for as many as the model takes.
    crop_size_w: i32,
    /// Rows of the part; 0 for as many as the model takes.
    crop_size_h: i32,
    /// Reserved.
    resize: bool,
    /// Reserved.
    resize_output_w: i32,
    /// Reserved.
    resize_output_h: i32,
    /// Reserved.
    rotation_angle: u32,
    /// Whether rows and columns are added.
    padding: bool,
    /// Columns that are added on the left.
    left_padding_size: i32,
    /// Columns that are added on the right.
    right_padding_size: i32,
    /// Rows that are added above.
    top_padding_size: i32,
    /// Rows that are added below.
    bottom_padding_size: i32,
    /// The value of what is added.
    padding_value: f32,
    /// Means of channels, which are subtracted.
    mean_chn_0: i32,
    /// As the one before.
    mean_chn_1: i32,
    /// As the one before.
    mean_chn_2: i32,
    /// Of a channel that no model here has.
    mean_chn_3: i32,
    /// Minima of channels, which are subtracted too.
    min_chn_0: f32,
    /// As the one before.
    min_chn_1: f32,
    /// As the one before.
    min_chn_2: f32,
    /// Of a channel that no model here has.
    min_chn_3: f32,
    /// Factors of channels, applied last; 1 by default.
    var_reci_chn_0: Option<f32>,
    /// As the one before.
    var_reci_chn_1: Option<f32>,
    /// As the one before.
    var_reci_chn_2: Option<f32>,
    /// Of a channel that no model here has.
    var_reci_chn_3: Option<f32>,
    /// The matrix that converts colours, row by row.
    matrix_r0c0: Option<i32>,
    /// As the one before.
    matrix_r0c1: Option<i32>,
    /// As the one before.
    matrix_r0c2: Option<i32>,
    /// As the one before.
    matrix_r1c0: Option<i32>,
    /// As the one before.
    matrix_r1c1: Option<i32>,
    /// As the one before.
    matrix_r1c2: Option<i32>,
    /// As the one before.
    matrix_r2c0: Option<i32>,
    /// As the one before.
    matrix_r2c1: Option<i32>,
    /// As the one before.
    matrix_r2c2: Option<i32>,
    /// Added after the matrix, to pictures that are not YUV.
    output_bias_0: Option<i32>,
    /// As the one before.
    output_bias_1: Option<i32>,
    /// As the one before.
    output_bias_2: Option<i32>,
    /// Subtracted before the matrix, from pictures that are YUV.
    input_bias_0: Option<i32>,
    /// As the one before.
    input_bias_1: Option<i32>,
    /// As the one before.
    input_bias_2: Option<i32>,
    /// Reserved.
    raw_rgbir_to_f16_n: Option<u32>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl AippOp {
    /// The colour conversion matrix, row by row: from the file, or else the one for the format.
    /// Without conversion, missing entries are 0.
    pub fn matrix(&self) -> [i32; 9] {
        // As the vendor's converter leaves them.
        let defaults = match self.input_format {
            _ if !self.csc_switch => [0; 9],
            AippInputFormat::Yuv420spU8 => YUV_MATRIX,
            _ => RGB_MATRIX,
        };
        let said = [
            self.matrix_r0c0,
            self.matrix_r0c1,
            self.matrix_r0c2,
            self.matrix_r1c0,
            self.matrix_r1c1,
            self.matrix_r1c2,
            self.matrix_r2c0,
            self.matrix_r2c1,
            self.matrix_r2c2,
        ];
        or_else(said, defaults)
    }

    /// Offsets that are added after the matrix, likewise.
    pub fn output_biases(&self) -> [i32; 3] {
        let said = [self.output_bias_0, self.output_bias_1, self.output_bias_2];
        or_else(said, self.default_biases())
    }

    /// Offsets that are subtracted before the matrix, likewise.
    pub fn input_biases(&self) -> [i32; 3] {
        let said = [self.input_bias_0, self.input_bias_1, self.input_bias_2];
        or_else(said, self.default_biases())
    }

    fn default_biases(&self) -> [i32; 3] {
        if self.csc_switch { BIASES } else { [0; 3] }
    }

    /// Means of the channels.
    pub fn means(&self) -> [i32; 4] {
        [
            self.mean_chn_0,
            self.mean_chn_1,
            self.mean_chn_2,
            self.mean_chn_3,
        ]
    }

    /// Minima of the channels.
    pub fn minima(&self) -> [f32; 4] {
        [
            self.min_chn_0,
            self.min_chn_1,
            self.min_chn_2,
            self.min_chn_3,
        ]
    }

    /// Factors of the channels.
    pub fn factors(&self) -> [f32; 4] {
        let said = [
            self.var_reci_chn_0,
            self.var_reci_chn_1,
            self.var_reci_chn_2,
            self.var_reci_chn_3,
        ];
        or_else(said, [1.0; 4])
    }

    /// Checks what can be checked without the model.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        self.check_reserved()?;
        match self.aipp_mode {
            AippMode::Undefined => Err(mistake("`aipp_mode` of `static` or `dynamic`", "none")),
            AippMode::Dynamic if self.max_src_image_size == 0 => Err(mistake(
                "`max_src_image_size` of 1 and more with `aipp_mode: dynamic`",
                "0",
            )),
            AippMode::Dynamic => Ok(()),
            AippMode::Static => self.check_static(),
        }
    }

    /// Keys that the vendor reserves have no meaning, so a value other than the default would be
    /// ignored silently.
    fn check_reserved(&self) -> Result<(), Mistake> {
        let reserved = [
            ("support_rotation", self.support_rotation),
            ("cpadding_value", self.cpadding_value != 0.0),
            ("single_line_mode", self.single_line_mode),
            ("resize", self.resize),
            ("rotation_angle", self.rotation_angle != 0),
        ];
        match reserved.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => {
                let expected = format!("the default of `{key}`, which the vendor reserves");
                Err(mistake(expected, "another value"))
            }
            None => Ok(()),
        }
    }

    fn check_static(&self) -> Result<(), Mistake> {
        if self.input_format == AippInputFormat::Undefined {
            let expected = "`input_format` with `aipp_mode: static`";
            return Err(mistake(expected, "none"));
        }
        // YUV400 has brightness only.
        if self.csc_switch && self.input_format == AippInputFormat::Yuv400U8 {
            let expected = "`csc_switch: false` with YUV400_U8, which has no colours";
            return Err(mistake(expected, "`true`"));
        }
        self.check_sizes()?;
        let padding = (0, PADDING_MAX);
        within("left_padding_size", self.left_padding_size, padding)?;
        within("right_padding_size", self.right_padding_size, padding)?;
        within("top_padding_size", self.top_padding_size, padding)?;
        within("bottom_padding_size", self.bottom_padding_size, padding)?;
        let factors = (-FLOAT16_MAX, FLOAT16_MAX);
        within("padding_value", self.padding_value, factors)?;
        for element in self.matrix() {
            within("matrix_r*c*", element, MATRIX_RANGE)?;
        }
        for bias in self.output_biases() {
            within("output_bias_*", bias, (0, 255))?;
        }
        for bias in self.input_biases() {
            within("input_bias_*", bias, (0, 255))?;
        }
        for channel in 0..4 {
            within("mean_chn_*", self.means()[channel], (0, 255))?;
            within("min_chn_*", self.minima()[channel], (0.0, 255.0))?;
            within("var_reci_chn_*", self.factors()[channel], factors)?;
        }
        Ok(())
    }

    /// Checks that the model accepts the preprocessed picture, given the input's dimensions in a
    /// gear.
    pub(super) fn check_fit(&self, extents: &[u64]) -> Result<(), Mistake> {
        let &[_, channels, height, width] = extents else {
            let expected = "an input with four axes: batch, channels, height, width";
            return Err(mistake(expected, format!("{extents:?}")));
        };
        if channels != 1 && channels != 3 {
            let expected = "an input with 1 or 3 channels";
            return Err(mistake(expected, format!("{extents:?}")));
        }
        // The rest follows from parameters that only the program knows.
        if self.aipp_mode == AippMode::Dynamic {
            return Ok(());
        }
        let is_grey = self.input_format == AippInputFormat::Yuv400U8;
        if is_grey != (channels == 1) && !(channels == 1 && self.csc_switch) {
            let expected = "1 channel for YUV400_U8, 3 for other formats, or 1 with `csc_switch`";
            return Err(mistake(expected, format!("{extents:?}")));
        }
        let size = self.output_size((width, height));
        if size != (width, height) {
            let expected = format!("pictures of {width}x{height} after crop and padding");
            return Err(mistake(expected, format!("{}x{}", size.0, size.1)));
        }
        // The model's own size is used as the picture's, so it has the same limits.
        if self.src_image_size_w == 0 {
            let is_halved = self.input_format == AippInputFormat::Yuv420spU8;
            let extent_max = u64::from(EXTENT_MAX.unsigned_abs());
            let is_small = (2..=extent_max).contains(&width) && (1..=extent_max).contains(&height);
            if !is_small || (is_halved && (width % 2 != 0 || height % 2 != 0)) {
                let expected = "a width from 2 and a height from 1 to 4096, even with YUV420SP_U8";
                return Err(mistake(expected, format!("{width}x{height}")));
            }
        }
        Ok(())
    }

    /// Width and height of pictures as they come in, for a model that takes `own`.
    pub fn source_size(&self, own: (u64, u64)) -> (u64, u64) {
        let (width, height) = (self.src_image_size_w, self.src_image_size_h);
        (or_own(width, own.0), or_own(height, own.1))
    }

    /// Width and height of the part of a picture that is cut out, likewise.
    pub fn crop_size(&self, own: (u64, u64)) -> (u64, u64) {
        if !self.crop {
            return self.source_size(own);
        }
        let (width, height) = (self.crop_size_w, self.crop_size_h);
        (or_own(width, own.0), or_own(height, own.1))
    }

    /// Width and height of pictures as they come out, likewise.
    pub fn output_size(&self, own: (u64, u64)) -> (u64, u64) {
        let (width, height) = self.crop_size(own);
        if !self.padding {
            return (width, height);
        }
        let paddings = [
            (self.left_padding_size, self.right_padding_size),
            (self.top_padding_size, self.bottom_padding_size),
        ];
        let [in_width, in_height] =
            paddings.map(|(a, b)| u64::try_from(i64::from(a) + i64::from(b)).unwrap_or(0));
        (width + in_width, height + in_height)
    }

    fn check_sizes(&self) -> Result<(), Mistake> {
        let (width, height) = (self.src_image_size_w, self.src_image_size_h);
        within("src_image_size_w", width, (0, EXTENT_MAX))?;
        within("src_image_size_h", height, (0, EXTENT_MAX))?;
        // A width of 1 is too narrow for the vendor's hardware, a height of 1 is not.
        if (width == 0) != (height == 0) || width == 1 {
            let expected = "`src_image_size_w` of 2 and more with `src_image_size_h`, or neither";
            return Err(mistake(expected, format!("{width} and {height}")));
        }
        // The model only has the size after these, which differs.
        if width == 0 && (self.crop || self.padding) {
            let expected = "`src_image_size_w` and `src_image_size_h` with `crop` or `padding`";
            return Err(mistake(expected, "neither"));
        }
        let is_halved = self.input_format == AippInputFormat::Yuv420spU8;
        if is_halved && (width % 2 != 0 || height % 2 != 0) {
            let expected = "even `src_image_size_w` and `src_image_size_h` with YUV420SP_U8";
            return Err(mistake(expected, format!("{width} and {height}")));
        }
        if !self.crop {
            return Ok(());
        }
        // An odd start would cut through the four pixels that share a U and a V.
        let (left, top) = (self.load_start_pos_w, self.load_start_pos_h);
        if is_halved && (left % 2 != 0 || top % 2 != 0) {
            let expected = "even `load_start_pos_w` and `load_start_pos_h` with YUV420SP_U8";
            return Err(mistake(expected, format!("{left} and {top}")));
        }
        // The ranges narrow from key to key, so that no sum below can be too large.
        within("load_start_pos_w", self.load_start_pos_w, (0, width - 1))?;
        within("load_start_pos_h", self.load_start_pos_h, (0, height - 1))?;
        let width_max = width - self.load_start_pos_w;
        let height_max = height - self.load_start_pos_h;
        within("crop_size_w", self.crop_size_w, (0, width_max))?;
        within("crop_size_h", self.crop_size_h, (0, height_max))?;
        // 0 means the model's size, which includes the padding.
        if (self.crop_size_w == 0 || self.crop_size_h == 0) && self.padding {
            let expected = "`crop_size_w` and `crop_size_h` with `padding`";
            return Err(mistake(expected, "0"));
        }
        Ok(())
    }
}

/// A dimension from the file, or that of the model.
fn or_own(said: i32, own: u64) -> u64 {
    u64::try_from(said).ok().filter(|&n| n > 0).unwrap_or(own)
}

fn or_else<T: Copy, const N: usize>(said: [Option<T>; N], defaults: [T; N]) -> [T; N] {
    std::array::from_fn(|i| said[i].unwrap_or(defaults[i]))
}

fn within<T>(key: &str, value: T, (least, most): (T, T)) -> Result<(), Mistake>
where
    T: PartialOrd + std::fmt::Display + Copy,
{
    // Written so that NaN is outside.
    if value >= least && value <= most {
        return Ok(());
    }
    let expected = format!("`{key}` from {least} to {most}");
    Err(mistake(expected, value.to_string()))
}

#[cfg(test)]
mod tests;
