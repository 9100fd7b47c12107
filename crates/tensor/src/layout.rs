//! Layouts: the meaning of a tensor's axes.
//!
//! The names are those of the Ascend format enumeration, which users meet in file names, options
//! and documents. Numbers that files use for a layout live in `opscope-store`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

macro_rules! layouts {
    ($($variant:ident => $name:literal;)*) => {
        /// The named arrangement of a tensor's axes.
        #[allow(missing_docs, reason = "the variants are the names of the enumeration")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Layout {
            $($variant,)*
            #[default]
            Nd,
        }

        impl Layout {
            /// Every layout, in the order of the Ascend enumeration, `ND` last.
            pub const ALL: &'static [Layout] = &[$(Layout::$variant,)* Layout::Nd];

            /// The name as Ascend tools print it, such as `NC1HWC0`.
            pub fn name(self) -> &'static str {
                match self { $(Layout::$variant => $name,)* Layout::Nd => "ND" }
            }
        }
    };
}

layouts! {
    Nchw => "NCHW";
    Nhwc => "NHWC";
    Nc1hwc0 => "NC1HWC0";
    FractalZ => "FRACTAL_Z";
    Nc1c0hwPad => "NC1C0HWPAD";
    Nhwc1c0 => "NHWC1C0";
    FsrNchw => "FSR_NCHW";
    FractalDeconv => "FRACTAL_DECONV";
    C1hwnc0 => "C1HWNC0";
    FractalDeconvTranspose => "FRACTAL_DECONV_TRANSPOSE";
    FractalDeconvSpStrideTrans => "FRACTAL_DECONV_SP_STRIDE_TRANS";
    Nc1hwc0C04 => "NC1HWC0_C04";
    FractalZC04 => "FRACTAL_Z_C04";
    Chwn => "CHWN";
    FractalDeconvSpStride8Trans => "FRACTAL_DECONV_SP_STRIDE8_TRANS";
    Hwcn => "HWCN";
    Nc1khkwhwc0 => "NC1KHKWHWC0";
    BnWeight => "BN_WEIGHT";
    FilterHwck => "FILTER_HWCK";
    HashtableLookupLookups => "HASHTABLE_LOOKUP_LOOKUPS";
    HashtableLookupKeys => "HASHTABLE_LOOKUP_KEYS";
    HashtableLookupValue => "HASHTABLE_LOOKUP_VALUE";
    HashtableLookupOutput => "HASHTABLE_LOOKUP_OUTPUT";
    HashtableLookupHits => "HASHTABLE_LOOKUP_HITS";
    C1hwncoc0 => "C1HWNCoC0";
    Md => "MD";
    Ndhwc => "NDHWC";
    FractalZz => "FRACTAL_ZZ";
    FractalNz => "FRACTAL_NZ";
    Ncdhw => "NCDHW";
    Dhwcn => "DHWCN";
    Ndc1hwc0 => "NDC1HWC0";
    FractalZ3d => "FRACTAL_Z_3D";
    Cn => "CN";
    Nc => "NC";
    Dhwnc => "DHWNC";
    FractalZ3dTranspose => "FRACTAL_Z_3D_TRANSPOSE";
    FractalZnLstm => "FRACTAL_ZN_LSTM";
    FractalZG => "FRACTAL_Z_G";
    Reserved => "RESERVED";
    All => "ALL";
    Null => "NULL";
    NdRnnBias => "ND_RNN_BIAS";
    FractalZnRnn => "FRACTAL_ZN_RNN";
    Yuv => "YUV";
    YuvA => "YUV_A";
    Ncl => "NCL";
    FractalZWino => "FRACTAL_Z_WINO";
    C1hwc0 => "C1HWC0";
    Max => "MAX";
}

impl Layout {
    /// Number of axes of a plain layout with named axes; `None` for `ND` and for device layouts.
    pub fn n_named_axes(self) -> Option<usize> {
        use Layout::{Chwn, Dhwcn, Dhwnc, Hwcn, Ncdhw, Nchw, Ndhwc, Nhwc};
        match self {
            Nchw | Nhwc | Hwcn | Chwn => Some(4),
            Ncdhw | Ndhwc | Dhwcn | Dhwnc => Some(5),
            _ => None,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A layout name that is not in [`Layout::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown layout `{0}`")]
pub struct ParseLayoutError(String);

impl FromStr for Layout {
    type Err = ParseLayoutError;

    /// Reads the exact, upper-case name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Layout::ALL
            .iter()
            .copied()
            .find(|layout| layout.name() == text)
            .ok_or_else(|| ParseLayoutError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for &layout in Layout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        assert!("nchw".parse::<Layout>().is_err());
        for &layout in Layout::ALL {
            let n_letters = layout.name().len();
            assert!(layout.n_named_axes().is_none_or(|n| n == n_letters));
        }
    }
}
