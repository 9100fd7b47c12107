//! Objects of media processing: named numbers, as no hardware reads them.

use std::collections::BTreeMap;

use crate::handle::Handle;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// `acldvppPicDesc`, a picture.
    PicDesc,
    /// `acldvppBatchPicDesc`, a list of pictures.
    BatchPicDesc,
    /// `acldvppStreamDesc`, a piece of a video.
    StreamDesc,
    /// `acldvppRoiConfig`, a region of a picture.
    RoiConfig,
    /// `acldvppResizeConfig`.
    ResizeConfig,
    /// `acldvppJpegeConfig`, compression settings of a picture.
    JpegeConfig,
    /// `acldvppBorderConfig`.
    BorderConfig,
    /// `acldvppChannelDesc`, a channel for pictures.
    ChannelDesc,
    /// `aclvdecChannelDesc`, a channel that decodes videos.
    VdecChannelDesc,
    /// `aclvdecFrameConfig`.
    VdecFrameConfig,
    /// `aclvencChannelDesc`, a channel that encodes videos.
    VencChannelDesc,
    /// `aclvencFrameConfig`.
    VencFrameConfig,
}

/// The fields of objects. Each is 0 until set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the names are those of the functions that set them"
)]
pub enum MediaField {
    BitDepth,
    BorderType,
    Bottom,
    BufAddr,
    BufSize,
    Callback,
    ChannelId,
    Data,
    EnType,
    Eos,
    ForceIFrame,
    Format,
    Height,
    HeightStride,
    Interpolation,
    KeyFrameInterval,
    Left,
    Level,
    MaxBitRate,
    Mode,
    OutMode,
    OutPicFormat,
    OutPicHeight,
    OutPicWidth,
    PicFormat,
    PicHeight,
    PicWidth,
    RcMode,
    RefFrameNum,
    RetCode,
    Right,
    Size,
    SrcRate,
    ThreadId,
    Timestamp,
    Top,
    /// One of the border values, by index.
    Value(u32),
    Width,
    WidthStride,
}

/// An object of a kind.
#[derive(Debug)]
pub(crate) struct MediaObject {
    pub(crate) kind: MediaKind,
    /// Values as bits, of any type. A map, because most objects set few of the fields, and none is
    /// read often.
    // A map, because most objects set few of the fields, and none of them is read often.
    pub(crate) fields: BTreeMap<MediaField, u64>,
    /// The pictures of a batch, destroyed with it.
    pub(crate) pictures: Vec<Handle>,
}

/// A number that a field holds.
pub trait MediaNumber: Copy {
    /// Its bits.
    fn to_bits(self) -> u64;
    /// The number with these bits; higher ones are truncated, as in C.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! media_numbers {
    ($($number:ty),+) => {$(
        impl MediaNumber for $number {
            fn to_bits(self) -> u64 {
                // Negative numbers are sign-extended, and truncated again on reading.
                self as u64
            }

            fn from_bits(bits: u64) -> $number {
                bits as $number
            }
        }
    )+};
}

media_numbers!(u8, u32, i32, u64, usize);

impl MediaNumber for f64 {
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }

    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}
