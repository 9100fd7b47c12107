//! Objects of media processing: named numbers, as no hardware is there to read them.

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
    /// `acldvppJpegeConfig`, how a picture is compressed.
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

/// The fields that objects have. Each is 0 until it is set.
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
    /// One of the values that fill a border, by its position.
    Value(u32),
    Width,
    WidthStride,
}

/// An object of a kind.
#[derive(Debug)]
pub(crate) struct MediaObject {
    pub(crate) kind: MediaKind,
    /// Values as bits, whatever their type.
    // A map, because most objects set few of the fields, and none of them is read often.
    pub(crate) fields: BTreeMap<MediaField, u64>,
    /// The pictures of a batch, which end with it.
    pub(crate) pictures: Vec<Handle>,
}

/// A number that a field holds.
pub trait MediaNumber: Copy {
    /// Its bits.
    fn to_bits(self) -> u64;
    /// The number that has these bits; higher ones are cut off, as C does it.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! media_numbers {
    ($($number:ty),+) => {$(
        impl MediaNumber for $number {
            fn to_bits(self) -> u64 {
                // Negative numbers keep their sign in the higher bits, which are cut off again.
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
