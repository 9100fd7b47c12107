//! AIPP: preprocessing of a model's input pictures.
//!
//! `parameters` holds the parameters for the pictures of a batch, with the vendor's checks;
//! `prepare` applies them.

mod parameters;
mod prepare;

pub(crate) use self::parameters::{
    AippItem, AippParameters, ColourConversion, Crop, ITEMS_MAX, Normalisation, Padding,
    picture_bytes,
};
pub(crate) use self::prepare::prepare;
