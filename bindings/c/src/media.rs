//! Media processing, generated from the table shared by both bindings.

use opscope_acl::{Handle, MEDIA_ADVICE, MediaField, MediaKind, media_functions};
use pastey::paste;

use crate::border::process;
use crate::pointer::OutPointer;
use crate::table::{codes, refusals, results, values};

/// Generates C functions from the table.
macro_rules! media {
    (
        objects {$(
            $prefix:ident $_prefix:ident $object:ident $_object:ident
                $kind:ident($($parameter:ident: $initial:ident),*) {
                both {$($both:ident $_both:ident: $both_type:ty),*}
                set {$($set:ident $_set:ident: $set_type:ty),*}
                get {$($get:ident $_get:ident: $get_type:ty),*}
            }
        )+}
        refusals {$($refuse:ident($($type:ty),*) $_refuse:ident;)+}
        refused_results {$($result:ident($($result_type:ty),*) $_result:ident [$($_zero:expr),+];)+}
    ) => {
        paste! {
            values! {$(
                [<$prefix Create $object>]($($parameter: u32),*) -> Handle
                    => process().create_media(
                        MediaKind::$kind, &[$((MediaField::$initial, $parameter.into())),*]
                    ), or 0;
            )+}
            codes! {$(
                [<$prefix Destroy $object>](object: Handle)
                    => process().destroy_media(MediaKind::$kind, object);
            )+}
        }
        $(
            setters! { $prefix $object $kind {$($both: $both_type,)* $($set: $set_type,)*} }
            getters! { $prefix $object $kind {$($both: $both_type,)* $($get: $get_type,)*} }
        )+
        refusals! {
            because MEDIA_ADVICE;
            $($refuse($($type),*);)+
            $($result($($result_type),*);)+
        }
    };
}

macro_rules! setters {
    ($prefix:ident $object:ident $kind:ident {$($field:ident: $type:ty,)*}) => {
        paste! {$(codes! {
            [<$prefix Set $object $field>](object: Handle, value: $type)
                => process().set_media(MediaKind::$kind, object, MediaField::$field, value);
        })*}
    };
}

macro_rules! getters {
    ($prefix:ident $object:ident $kind:ident {$($field:ident: $type:ty,)*}) => {
        paste! {$(values! {
            [<$prefix Get $object $field>](object: Handle) -> $type
                => process().media(MediaKind::$kind, object, MediaField::$field), or 0;
        })*}
    };
}

// Both bindings expand the same table, so neither can miss a function.
media_functions!(media);

results! {
    acldvppMalloc(devPtr: OutPointer<usize>, size: usize)
        => devPtr = process().malloc(size, 0)?;
}

codes! {
    acldvppFree(address: usize) => process().free(address);
    acldvppSetRoiConfig(region: Handle, left: u32, right: u32, top: u32, bottom: u32) => {
        let fields = [
            (MediaField::Left, left),
            (MediaField::Right, right),
            (MediaField::Top, top),
            (MediaField::Bottom, bottom),
        ];
        fields.into_iter().try_for_each(|(field, value)| {
            process().set_media(MediaKind::RoiConfig, region, field, value)
        })
    };
    acldvppDestroyBatchPicDesc(batch: Handle)
        => process().destroy_media(MediaKind::BatchPicDesc, batch);
    acldvppSetBorderConfigValue(border: Handle, index: u32, value: f64) => process()
        .set_media(MediaKind::BorderConfig, border, MediaField::Value(index), value);
    // Callbacks of the program, which are never called.
    aclvdecSetChannelDescCallback(channel: Handle, callback: usize) => process()
        .set_media(MediaKind::VdecChannelDesc, channel, MediaField::Callback, callback);
    aclvencSetChannelDescCallback(channel: Handle, callback: usize) => process()
        .set_media(MediaKind::VencChannelDesc, channel, MediaField::Callback, callback);
}

values! {
    acldvppCreateBatchPicDesc(n: u32) -> Handle
        => process().create_media_batch(n).unwrap_or(0), or 0;
    acldvppGetPicDesc(batch: Handle, index: u32) -> Handle
        => process().media_picture(batch, index).unwrap_or(0), or 0;
    acldvppGetBorderConfigValue(border: Handle, index: u32) -> f64 => process()
        .media(MediaKind::BorderConfig, border, MediaField::Value(index)), or 0.0;
    aclvdecGetChannelDescCallback(channel: Handle) -> usize => process()
        .media(MediaKind::VdecChannelDesc, channel, MediaField::Callback), or 0;
    aclvencGetChannelDescCallback(channel: Handle) -> usize => process()
        .media(MediaKind::VencChannelDesc, channel, MediaField::Callback), or 0;
}

// Channel parameters by number and length, and hardware results: pyACL has no such functions.
refusals! {
    because MEDIA_ADVICE;
    aclvdecSetChannelDescParam(Handle, i32, usize, usize);
    aclvdecGetChannelDescParam(Handle, i32, usize, usize, usize);
    aclvencSetChannelDescParam(Handle, i32, usize, usize);
    aclvencGetChannelDescParam(Handle, i32, usize, usize, usize);
    acldvppSetChannelDescParam(Handle, i32, usize, usize);
    acldvppGetChannelDescParam(Handle, i32, usize, usize, usize);
    acldvppGetLutMapData(Handle, u32, usize, usize);
    acldvppGetHistData(Handle, u32, usize, usize);
    acldvppCreateLutMap() -> Handle;
    acldvppGetLutMapDims(Handle) -> u32;
    acldvppCreateHist() -> Handle;
    acldvppGetHistDims(Handle) -> u32;
    acldvppGetHistRetCode(Handle) -> u32;
}
