//! `opscope.acl.media`: media processing, generated from the table that both bindings share.

use opscope_acl::{
    Answer, MEDIA_ADVICE, MediaField, MediaKind, MediaNumber, Status, media_functions,
};
use pastey::paste;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{NumberArg, Word32Arg, WordArg, callable};
use crate::call::{code, process};
use crate::table::table;

/// Generates Python functions from the table, and `fill_table`, which adds them to a module.
macro_rules! media {
    (
        objects {$(
            $_prefix:ident $prefix:ident $_object:ident $object:ident
                $kind:ident($($parameter:ident: $initial:ident),*) {
                both {$($both:ident $both_name:ident: $both_type:ty),*}
                set {$($set:ident $set_name:ident: $set_type:ty),*}
                get {$($get:ident $get_name:ident: $get_type:ty),*}
            }
        )+}
        refusals {$($refuse_in_c:ident($($_type:ty),*) $refuse:ident;)+}
        refused_results {$(
            $result_in_c:ident($($_result_type:ty),*) $result:ident [$($zero:expr),+];
        )+}
    ) => {
        paste! { table! {
            [also $($refuse,)+ $($result),+]

            values {$(
                [<$prefix _create_ $object>]($($parameter: Word32Arg),*) -> usize
                    => process().create_media(
                        MediaKind::$kind, &[$((MediaField::$initial, $parameter.0.into())),*]
                    ), or 0;
                $([<$prefix _get_ $object _ $both_name>](object: WordArg) -> $both_type
                    => process().media(MediaKind::$kind, object.0, MediaField::$both), or 0;)*
                $([<$prefix _get_ $object _ $get_name>](object: WordArg) -> $get_type
                    => process().media(MediaKind::$kind, object.0, MediaField::$get), or 0;)*
            )+}

            codes {$(
                [<$prefix _destroy_ $object>](object: WordArg)
                    => process().destroy_media(MediaKind::$kind, object.0);
                $([<$prefix _set_ $object _ $both_name>](object: WordArg, value: WordArg)
                    => set::<$both_type>(MediaKind::$kind, object, MediaField::$both, value);)*
                $([<$prefix _set_ $object _ $set_name>](object: WordArg, value: WordArg)
                    => set::<$set_type>(MediaKind::$kind, object, MediaField::$set, value);)*
            )+}
        } }

        $(
            /// Requires the hardware: 200001, and `acl.get_recent_err_msg()` names a replacement.
            #[pyfunction]
            #[pyo3(signature = (*_args))]
            fn $refuse(_args: &Bound<'_, PyTuple>) -> i32 {
                refused(stringify!($refuse_in_c)).0
            }
        )+
        $(
            /// Requires the hardware: zeroes and 200001, and `acl.get_recent_err_msg()` names a
            /// replacement.
            #[pyfunction]
            #[pyo3(signature = (*_args))]
            fn $result(_args: &Bound<'_, PyTuple>) -> ($(zero!($zero),)+ i32) {
                ($($zero,)+ refused(stringify!($result_in_c)).0)
            }
        )+
    };
}

/// Sets a field. Numbers of every width are truncated as in C.
fn set<N: MediaNumber>(
    kind: MediaKind,
    object: WordArg,
    field: MediaField,
    value: WordArg,
) -> Answer {
    let value = N::from_bits(MediaNumber::to_bits(value.0));
    process().set_media(kind, object.0, field, value)
}

/// The result type of a missing value.
macro_rules! zero {
    ($zero:expr) => {
        u32
    };
}

fn refused(function: &str) -> Status {
    process().refuse_function(function, MEDIA_ADVICE)
}

// The same table as for C: names and fields cannot drift apart.
media_functions!(media);

/// Functions without rows in the table.
pub(crate) mod more {
    use super::*;

    table! {
        [also vdec_set_channel_desc_callback, venc_set_channel_desc_callback]

        // There is one kind of memory, so programs may free it either way.
        pairs {
            /// acldvppMalloc: an address and the code. The memory is that of `acl.rt.malloc`.
            dvpp_malloc(size: WordArg) -> usize => process().malloc(size.0, 0);
        }

        codes {
            /// acldvppFree.
            dvpp_free(dev_ptr: WordArg) => process().free(dev_ptr.0);
            /// acldvppDestroyBatchPicDesc. Also destroys its images.
            dvpp_destroy_batch_pic_desc(batch_pic_desc: WordArg)
                => process().destroy_media(MediaKind::BatchPicDesc, batch_pic_desc.0);
            /// acldvppSetBorderConfigValue: one of the four values that fill a border.
            dvpp_set_border_config_value(border_config: WordArg, index: Word32Arg, value: NumberArg<f64>)
                => process().set_media(
                    MediaKind::BorderConfig, border_config.0, MediaField::Value(index.0), value.0
                );
        }

        values {
            /// acldvppCreateBatchPicDesc: a handle, or 0.
            dvpp_create_batch_pic_desc(batch_size: Word32Arg) -> usize
                => process().create_media_batch(batch_size.0).unwrap_or(0), or 0;
            /// acldvppGetPicDesc: an image of a batch, or 0.
            dvpp_get_pic_desc(batch_pic_desc: WordArg, index: Word32Arg) -> usize
                => process().media_picture(batch_pic_desc.0, index.0).unwrap_or(0), or 0;
            /// acldvppGetBorderConfigValue.
            dvpp_get_border_config_value(border_config: WordArg, index: Word32Arg) -> f64
                => process().media(
                    MediaKind::BorderConfig, border_config.0, MediaField::Value(index.0)
                ), or 0.0;
        }
    }

    /// aclvdecSetChannelDescCallback: a function that is never called, because nothing is decoded
    /// here.
    #[pyfunction]
    fn vdec_set_channel_desc_callback(
        py: Python<'_>,
        channel_desc: WordArg,
        callback: &Bound<'_, PyAny>,
    ) -> PyResult<i32> {
        set_callback(py, MediaKind::VdecChannelDesc, channel_desc, callback)
    }

    /// aclvencSetChannelDescCallback: a function that is never called, because nothing is encoded
    /// here.
    #[pyfunction]
    fn venc_set_channel_desc_callback(
        py: Python<'_>,
        channel_desc: WordArg,
        callback: &Bound<'_, PyAny>,
    ) -> PyResult<i32> {
        set_callback(py, MediaKind::VencChannelDesc, channel_desc, callback)
    }

    fn set_callback(
        py: Python<'_>,
        kind: MediaKind,
        channel: WordArg,
        callback: &Bound<'_, PyAny>,
    ) -> PyResult<i32> {
        let function = callable("callback", callback)?;
        // Its address alone: it is never called, so it need not be kept alive.
        let address = function.as_ptr().addr();
        Ok(code(py, || {
            process().set_media(kind, channel.0, MediaField::Callback, address)
        }))
    }
}
