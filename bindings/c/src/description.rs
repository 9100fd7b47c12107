//! Descriptions of models' inputs and outputs.

use std::ffi::c_char;

use opscope_acl::{Answer, Handle, status};

use crate::border::{null, process};
use crate::layout::{BatchSizes, HeightWidth, IoDims, IoDimsRange};
use crate::model::bytes;
use crate::pointer::{CText, InPointer, OutPointer};
use crate::strings::forget;
use crate::table::{codes, refusals, results, texts, values};

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
const UNDEFINED: i32 = -1;

codes! {
    aclmdlDestroyDesc(desc: Handle) => process().destroy_desc(desc).map(|()| forget(desc));
    aclmdlGetDesc(desc: Handle, model_id: u32) => process().fill_desc(desc, model_id);
    aclmdlGetDescFromFile(desc: Handle, path: CText) => process()
        .fill_desc_from_file(desc, path.require_path("aclmdlGetDescFromFile", "modelPath")?);
    aclmdlGetDescFromMem(desc: Handle, model: InPointer<u8>, size: usize) => process()
        .fill_desc_from_mem(desc, bytes("aclmdlGetDescFromMem", model, size)?);

    aclmdlGetInputIndexByName(desc: Handle, name: CText, index: OutPointer<usize>)
        => store_index("aclmdlGetInputIndexByName", name, index, |name| {
            process().input_index(desc, name)
        });
    aclmdlGetOutputIndexByName(desc: Handle, name: CText, index: OutPointer<usize>)
        => store_index("aclmdlGetOutputIndexByName", name, index, |name| {
            process().output_index(desc, name)
        });
}

values! {
    aclmdlCreateDesc() -> Handle => process().create_desc(), or 0;
    aclmdlGetNumInputs(desc: Handle) -> usize => process().n_inputs(desc), or 0;
    aclmdlGetNumOutputs(desc: Handle) -> usize => process().n_outputs(desc), or 0;
    aclmdlGetInputSizeByIndex(desc: Handle, index: usize) -> usize
        => process().input_size(desc, index), or 0;
    aclmdlGetOutputSizeByIndex(desc: Handle, index: usize) -> usize
        => process().output_size(desc, index), or 0;
    aclmdlGetInputFormat(desc: Handle, index: usize) -> i32
        => process().input_format(desc, index), or UNDEFINED;
    aclmdlGetOutputFormat(desc: Handle, index: usize) -> i32
        => process().output_format(desc, index), or UNDEFINED;
    aclmdlGetInputDataType(desc: Handle, index: usize) -> i32
        => process().input_data_type(desc, index), or UNDEFINED;
    aclmdlGetOutputDataType(desc: Handle, index: usize) -> i32
        => process().output_data_type(desc, index), or UNDEFINED;
}

results! {
    aclmdlGetInputDims(desc: Handle, index: usize, dims: OutPointer<IoDims>)
        => dims = IoDims::new(&process().input_dims(desc, index)?)?;
    /// Differs from the first version only for inputs with AIPP.
    aclmdlGetInputDimsV2(desc: Handle, index: usize, dims: OutPointer<IoDims>)
        => dims = IoDims::new(&process().input_dims_in_bytes(desc, index)?)?;
    aclmdlGetInputDimsRange(desc: Handle, index: usize, dimsRange: OutPointer<IoDimsRange>)
        => dimsRange = IoDimsRange::new(&process().input_dims_range(desc, index)?)?;
    aclmdlGetOutputDims(desc: Handle, index: usize, dims: OutPointer<IoDims>)
        => dims = IoDims::new(&process().output_dims(desc, index)?)?;
    aclmdlGetCurOutputDims(desc: Handle, index: usize, dims: OutPointer<IoDims>)
        => dims = IoDims::new(&process().current_output_dims(desc, index)?)?;

    // Gears are the sizes that a model supports, listed in a file next to it.
    aclmdlGetDynamicBatch(desc: Handle, batch: OutPointer<BatchSizes>)
        => batch = BatchSizes::new(&process().dynamic_batches(require_desc(FUNCTION, desc)?)?)?;
    aclmdlGetDynamicHW(desc: Handle, _index: usize, hw: OutPointer<HeightWidth>)
        => hw = HeightWidth::new(&process().dynamic_sizes(require_desc(FUNCTION, desc)?)?)?;
    aclmdlGetInputDynamicGearCount(desc: Handle, _index: usize, gearCount: OutPointer<usize>)
        => gearCount = process().dynamic_dims(require_desc(FUNCTION, desc)?)?.len();
}

refusals! {
    because "a failed operator leaves nothing but its dump";
    aclmdlCreateAndGetOpDesc(
        u32, u32, u32, OutPointer<c_char>, usize, OutPointer<usize>, OutPointer<usize>, OutPointer<usize>, OutPointer<usize>
    );
}

fn store_index(
    function: &'static str,
    name: CText,
    index: OutPointer<usize>,
    find: impl FnOnce(&str) -> Answer<usize>,
) -> Answer {
    let name = name.require_name(function, "name")?;
    index.require(function, "index")?;
    index.set(find(name)?);
    Ok(())
}

fn require_desc(function: &'static str, desc: Handle) -> Answer<Handle> {
    if desc == 0 {
        return Err(null(function, "modelDesc"));
    }
    Ok(desc)
}

codes! {
    /// `out` needs room for every gear.
    aclmdlGetInputDynamicDims(desc: Handle, _index: usize, out: OutPointer<IoDims>, count: usize) => {
        const FUNCTION: &str = "aclmdlGetInputDynamicDims";
        out.require(FUNCTION, "dims")?;
        let gears = process().dynamic_dims(require_desc(FUNCTION, desc)?)?;
        if count < gears.len() {
            return Err(status::INVALID_PARAM);
        }
        // All are converted before the first is stored: a failure leaves the program's list
        // unchanged.
        let gears = gears.iter().map(IoDims::new).collect::<Answer<Vec<_>>>()?;
        out.set_all(gears);
        Ok(())
    };
}

texts! {
    aclmdlGetInputNameByIndex(desc: Handle, index: usize)
        => process().input_name(desc, index), for desc, as format!("input.{index}"), or empty;
    aclmdlGetOutputNameByIndex(desc: Handle, index: usize)
        => process().output_name(desc, index), for desc, as format!("output.{index}"), or empty;
    aclmdlGetTensorRealName(desc: Handle, name: CText)
        => process().real_name(desc, name.name().ok()??), for desc,
        as format!("real_name.{}", name.lossy()), or null;
    aclmdlGetOpAttr(desc: Handle, op_name: CText, attribute: CText)
        => process().operator_attribute(desc, op_name.name().ok()??, attribute.name().ok()??),
        for desc, as format!("attribute.{}.{}", attribute.lossy(), op_name.lossy()), or null;
}
