//! AIPP: preprocessing of inputs, and the parameters of inputs with dynamic preprocessing.

use opscope_acl::{Answer, Handle};

use crate::border::process;
use crate::layout::{AippDims, AippInfoHead};
use crate::pointer::OutPointer;
use crate::table::{codes, results, values};

values! {
    aclmdlCreateAIPP(batch: u64) -> Handle => process().create_aipp(batch).unwrap_or(0), or 0;
}

results! {
    aclmdlGetAippDataSize(batch: u64, size: OutPointer<usize>)
        => size = process().aipp_data_size(batch)?;
}

codes! {
    aclmdlDestroyAIPP(aipp: Handle) => process().destroy_aipp(aipp);
    aclmdlSetAIPPInputFormat(aipp: Handle, format: i32)
        => process().set_aipp_input_format(aipp, format);
    /// A switch, a 3×3 matrix, and three offsets each for output and input.
    aclmdlSetAIPPCscParams(
        aipp: Handle, on: i8,
        r0c0: i16, r0c1: i16, r0c2: i16, r1c0: i16, r1c1: i16, r1c2: i16, r2c0: i16, r2c1: i16, r2c2: i16,
        output_0: u8, output_1: u8, output_2: u8, input_0: u8, input_1: u8, input_2: u8,
    ) => process().set_aipp_csc_params(
        aipp, on, [r0c0, r0c1, r0c2, r1c0, r1c1, r1c2, r2c0, r2c1, r2c2],
        [output_0, output_1, output_2], [input_0, input_1, input_2]
    );
    aclmdlSetAIPPRbuvSwapSwitch(aipp: Handle, on: i8)
        => process().set_aipp_rbuv_swap_switch(aipp, on);
    aclmdlSetAIPPAxSwapSwitch(aipp: Handle, on: i8) => process().set_aipp_ax_swap_switch(aipp, on);
    aclmdlSetAIPPSrcImageSize(aipp: Handle, width: i32, height: i32)
        => process().set_aipp_src_image_size(aipp, width, height);
    aclmdlSetAIPPScfParams(
        aipp: Handle, on: i8, from_width: i32, from_height: i32, to_width: i32, to_height: i32, index: u64,
    ) => process().set_aipp_scf_params(
        aipp, on, [from_width, from_height], [to_width, to_height], index
    );
    aclmdlSetAIPPCropParams(
        aipp: Handle, on: i8, left: i32, top: i32, width: i32, height: i32, index: u64,
    ) => process().set_aipp_crop_params(aipp, on, [left, top], [width, height], index);
    aclmdlSetAIPPPaddingParams(
        aipp: Handle, on: i8, top: i32, bottom: i32, left: i32, right: i32, index: u64,
    ) => process().set_aipp_padding_params(aipp, on, [top, bottom, left, right], index);
    aclmdlSetAIPPDtcPixelMean(aipp: Handle, c0: i16, c1: i16, c2: i16, c3: i16, index: u64)
        => process().set_aipp_dtc_pixel_mean(aipp, [c0, c1, c2, c3], index);
    aclmdlSetAIPPDtcPixelMin(aipp: Handle, c0: f32, c1: f32, c2: f32, c3: f32, index: u64)
        => process().set_aipp_dtc_pixel_min(aipp, [c0, c1, c2, c3], index);
    aclmdlSetAIPPPixelVarReci(aipp: Handle, c0: f32, c1: f32, c2: f32, c3: f32, index: u64)
        => process().set_aipp_pixel_var_reci(aipp, [c0, c1, c2, c3], index);
    aclmdlSetInputAIPP(model_id: u32, dataset: Handle, index: usize, aipp: Handle)
        => process().set_input_aipp(model_id, dataset, index, aipp);
    aclmdlSetAIPPByInputIndex(model_id: u32, dataset: Handle, index: usize, aipp: Handle)
        => process().set_aipp_by_input_index(model_id, dataset, index, aipp);

    aclmdlGetAippType(
        model_id: u32, index: usize, kind: OutPointer<i32>, attached: OutPointer<usize>,
    ) => {
        const FUNCTION: &str = "aclmdlGetAippType";
        attached.require(FUNCTION, "dynamicAttachedDataIndex")?;
        kind.require(FUNCTION, "type")?;
        let (number, index) = process().aipp_type(model_id, index)?;
        kind.set(number);
        attached.set(index);
        Ok(())
    };
    /// The shape has room for 128 entries, and only the used ones are written. The next member
    /// belongs to the program and is left alone.
    aclmdlGetFirstAippInfo(model_id: u32, index: usize, info: OutPointer<AippInfoHead>) => {
        info.require("aclmdlGetFirstAippInfo", "aippInfo")?;
        // The whole structure has 300,000 bytes, too much for the stack of some threads.
        let found = process().first_aipp_info(model_id, index)?;
        let shapes = found.shapes.iter().map(AippDims::new);
        let shapes = shapes.collect::<Answer<Vec<AippDims>>>()?;
        info.set(AippInfoHead::new(&found));
        info.behind().set_all(shapes);
        Ok(())
    };
}
