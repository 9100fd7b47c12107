//! AIPP: preparing the pictures that a model takes.
//!
//! `parameters` holds what is done to the pictures of a batch, with the vendor's checks; `prepare`
//! does it.

mod parameters;
mod prepare;

pub(crate) use self::parameters::{
    AippItem, AippParameters, ColourConversion, Crop, ITEMS_MAX, Padding, picture_bytes,
};
pub(crate) use self::prepare::prepare;
