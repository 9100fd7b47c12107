//! AIPP: queries of the preprocessing, and its parameters.

use std::sync::Arc;

use opscope_store::file_format::gears_json::AippInputFormat;

use crate::aipp::{
    AippItem, AippParameters, ColourConversion, Crop, ITEMS_MAX, Normalisation, Padding,
};
use crate::handle::Handle;
use crate::model::{AippInfo, AippRole, ModelDesc, parameter_bytes};
use crate::status::{FAILURE, GE_AIPP_NOT_EXIST, GE_DYNAMIC_INPUT_LENGTH_INVALID, INVALID_PARAM};
use crate::{AclProcess, Answer};

/// `ACL_INVALID_NODE_INDEX`: no such input.
const NO_INDEX: usize = 0xFFFF_FFFF;
/// Maximum width and height of a picture.
const EXTENT_MAX: i32 = 4096;
/// Minimum size for scaling, and the maximum scaled width.
const SCALED_MIN: i32 = 16;
const SCALED_WIDTH_MAX: i32 = 1920;
/// Maximum padding on a side.
const PADDING_MAX: i32 = 32;
/// Range of a matrix element, according to the vendor's documentation.
const MATRIX_RANGE: (i32, i32) = (-32_677, 32_676);
/// The largest finite float16.
const FLOAT16_MAX: f32 = 65_504.0;

impl AclProcess {
    /// `aclmdlGetAippType`: the number of `aclmdlInputAippType` of an input, and the index of the
    /// input for its parameters; `0xFFFFFFFF` if there is none.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`, `INVALID_PARAM` for an index out of range.
    pub fn aipp_type(&self, model_id: u32, index: usize) -> Answer<(i32, usize)> {
        let description = self.described_input(model_id, index)?;
        let role = description.aipp_role(index);
        let attached = match role {
            AippRole::Dynamic(attached) => attached,
            AippRole::None | AippRole::Static | AippRole::Parameters => NO_INDEX,
        };
        Ok((role.number(), attached))
    }

    /// `aclmdlGetFirstAippInfo`: the preprocessing of an input. For an input with parameters, that
    /// of the related picture input.
    ///
    /// # Errors
    /// As for [`AclProcess::aipp_type`], and `GE_AIPP_NOT_EXIST` for an input without AIPP.
    pub fn first_aipp_info(&self, model_id: u32, index: usize) -> Answer<AippInfo> {
        let description = self.described_input(model_id, index)?;
        let aipp = description.aipp(index);
        let aipp = aipp.or_else(|| description.aipp_of_parameters(index));
        aipp.map(|aipp| aipp.info()).ok_or(GE_AIPP_NOT_EXIST)
    }

    fn described_input(&self, model_id: u32, index: usize) -> Answer<Arc<ModelDesc>> {
        self.check_executor("AIPP of a model was asked for")?;
        let description = self.model(model_id)?.description.clone();
        let n_inputs = description.n_counted_inputs();
        if index >= n_inputs {
            let reason = format!("the model has {n_inputs} inputs");
            return Err(self.invalid("index", index, &reason));
        }
        Ok(description)
    }

    /// `aclmdlGetAippDataSize`: bytes of the parameters for a batch of `n` pictures.
    ///
    /// # Errors
    /// `INVALID_PARAM` for 0, and for more than 65,536.
    pub fn aipp_data_size(&self, n: u64) -> Answer<usize> {
        let n = self.batch_size(n)?;
        parameter_bytes(n).ok_or(INVALID_PARAM)
    }

    /// `aclmdlCreateAIPP`: parameters for a batch of `n` pictures. Factors are 1, everything else
    /// is off or 0; format and size must be set.
    ///
    /// # Errors
    /// As for [`AclProcess::aipp_data_size`].
    pub fn create_aipp(&self, n: u64) -> Answer<Handle> {
        let n = self.batch_size(n)?;
        let handle = self.handles.next();
        let parameters = AippParameters::new(n);
        Ok(self.objects().aipps.insert(handle, parameters))
    }

    fn batch_size(&self, n: u64) -> Answer<usize> {
        // An invalid number would take all memory for parameters.
        let counted = usize::try_from(n)
            .ok()
            .filter(|n| (1..=ITEMS_MAX).contains(n));
        counted.ok_or_else(|| {
            let reason = format!("expected 1 to {ITEMS_MAX}");
            self.invalid("batchSize", n, &reason)
        })
    }

    /// `aclmdlDestroyAIPP`. Datasets keep their copies.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, AIPP parameters.
    pub fn destroy_aipp(&self, aipp: Handle) -> Answer {
        let ended = self.objects().aipps.take(aipp);
        ended.map(drop)
    }

    /// `aclmdlSetAIPPInputFormat`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, and for formats other than
    /// YUV420SP_U8, XRGB8888_U8, RGB888_U8 and YUV400_U8.
    pub fn set_aipp_input_format(&self, aipp: Handle, number: i32) -> Answer {
        let format = AippInputFormat::from_number(number).ok_or_else(|| {
            let reason =
                "expected YUV420SP_U8 (1), XRGB8888_U8 (2), RGB888_U8 (3) or YUV400_U8 (4)";
            self.invalid("inputFormat", number, reason)
        })?;
        self.change_aipp(aipp, |parameters| parameters.format = format)
    }

    /// `aclmdlSetAIPPCscParams`: whether colours are converted, with a row-major matrix, offsets
    /// added after the product, and offsets subtracted before it.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a switch other than 0 and 1, and
    /// elements outside -32677 and 32676.
    pub fn set_aipp_csc_params(
        &self,
        aipp: Handle,
        switch: i8,
        matrix: [i16; 9],
        output_biases: [u8; 3],
        input_biases: [u8; 3],
    ) -> Answer {
        // A disabled matrix is not checked, as in the vendor's library.
        let is_on = self.switched("cscSwitch", switch)?;
        if !is_on {
            return self.change_aipp(aipp, |parameters| parameters.csc = None);
        }
        let matrix = matrix.map(i32::from);
        for element in matrix {
            self.within("cscMatrix", element, MATRIX_RANGE)?;
        }
        let [a, b, c, d, e, f, g, h, i] = matrix;
        let csc = ColourConversion {
            matrix: [[a, b, c], [d, e, f], [g, h, i]],
            output_biases: output_biases.map(i32::from),
            input_biases: input_biases.map(i32::from),
        };
        self.change_aipp(aipp, |parameters| parameters.csc = Some(csc))
    }

    /// `aclmdlSetAIPPRbuvSwapSwitch`: whether R and B, or U and V, are swapped.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, and a switch other than 0 and 1.
    pub fn set_aipp_rbuv_swap_switch(&self, aipp: Handle, switch: i8) -> Answer {
        let is_on = self.switched("rbuvSwapSwitch", switch)?;
        self.change_aipp(aipp, |parameters| parameters.rbuv_swap = is_on)
    }

    /// `aclmdlSetAIPPAxSwapSwitch`: whether the first of four channels is dropped rather than the
    /// last.
    ///
    /// # Errors
    /// As for [`AclProcess::set_aipp_rbuv_swap_switch`].
    pub fn set_aipp_ax_swap_switch(&self, aipp: Handle, switch: i8) -> Answer {
        let is_on = self.switched("axSwapSwitch", switch)?;
        self.change_aipp(aipp, |parameters| parameters.ax_swap = is_on)
    }

    /// `aclmdlSetAIPPSrcImageSize`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a width outside 2 and 4096, and a
    /// height outside 1 and 4096.
    pub fn set_aipp_src_image_size(&self, aipp: Handle, width: i32, height: i32) -> Answer {
        let width = self.size_within("srcImageSizeW", width, (2, EXTENT_MAX))?;
        let height = self.size_within("srcImageSizeH", height, (1, EXTENT_MAX))?;
        self.change_aipp(aipp, |parameters| {
            (parameters.width, parameters.height) = (width, height);
        })
    }

    /// `aclmdlSetAIPPScfParams`: whether a picture is scaled, and between which sizes. Setting the
    /// parameters of a dataset refuses scaling, as in the vendor's library.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a picture beyond the batch, a
    /// switch other than 0 and 1, and sizes outside 16 and 4096, for the scaled width 1920.
    pub fn set_aipp_scf_params(
        &self,
        aipp: Handle,
        switch: i8,
        from: [i32; 2],
        to: [i32; 2],
        batch_index: u64,
    ) -> Answer {
        let is_on = self.switched("scfSwitch", switch)?;
        // Sizes of disabled scaling are not checked, as in the vendor's library.
        if is_on {
            self.size_within("scfInputSizeW", from[0], (SCALED_MIN, EXTENT_MAX))?;
            self.size_within("scfInputSizeH", from[1], (SCALED_MIN, EXTENT_MAX))?;
            self.size_within("scfOutputSizeW", to[0], (SCALED_MIN, SCALED_WIDTH_MAX))?;
            self.size_within("scfOutputSizeH", to[1], (SCALED_MIN, EXTENT_MAX))?;
        }
        self.change_item(aipp, batch_index, |item| item.is_scaled = is_on)
    }

    /// `aclmdlSetAIPPCropParams`: whether a picture is cropped, with the column, row, width and
    /// height.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a picture beyond the batch, a
    /// switch other than 0 and 1, a start outside 0 and 4095, and a size outside 1 and 4096.
    pub fn set_aipp_crop_params(
        &self,
        aipp: Handle,
        switch: i8,
        start: [i32; 2],
        size: [i32; 2],
        batch_index: u64,
    ) -> Answer {
        let mut crop = None;
        if self.switched("cropSwitch", switch)? {
            crop = Some(Crop {
                left: self.size_within("cropStartPosW", start[0], (0, EXTENT_MAX - 1))?,
                top: self.size_within("cropStartPosH", start[1], (0, EXTENT_MAX - 1))?,
                width: self.size_within("cropSizeW", size[0], (1, EXTENT_MAX))?,
                height: self.size_within("cropSizeH", size[1], (1, EXTENT_MAX))?,
            });
        }
        self.change_item(aipp, batch_index, |item| item.crop = crop)
    }

    /// `aclmdlSetAIPPPaddingParams`: whether zeros are added at the top, bottom, left and right.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a picture beyond the batch, a
    /// switch other than 0 and 1, and numbers outside 0 and 32.
    pub fn set_aipp_padding_params(
        &self,
        aipp: Handle,
        switch: i8,
        sizes: [i32; 4],
        batch_index: u64,
    ) -> Answer {
        let mut padding = Padding::default();
        if self.switched("paddingSwitch", switch)? {
            padding.top = self.size_within("paddingSizeTop", sizes[0], (0, PADDING_MAX))?;
            padding.bottom = self.size_within("paddingSizeBottom", sizes[1], (0, PADDING_MAX))?;
            padding.left = self.size_within("paddingSizeLeft", sizes[2], (0, PADDING_MAX))?;
            padding.right = self.size_within("paddingSizeRight", sizes[3], (0, PADDING_MAX))?;
        }
        self.change_item(aipp, batch_index, |item| item.padding = padding)
    }

    /// `aclmdlSetAIPPDtcPixelMean`: a mean to subtract from each channel.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not AIPP parameters, a picture beyond the batch, and
    /// means outside 0 and 255.
    pub fn set_aipp_dtc_pixel_mean(
        &self,
        aipp: Handle,
        means: [i16; 4],
        batch_index: u64,
    ) -> Answer {
        for mean in means {
            self.within("dtcPixelMean", mean, (0, 255))?;
        }
        self.change_channels(aipp, batch_index, means, |channel, mean| {
            channel.mean = f32::from(mean);
        })
    }

    /// `aclmdlSetAIPPDtcPixelMin`: a minimum to subtract from each channel.
    ///
    /// # Errors
    /// As for [`AclProcess::set_aipp_dtc_pixel_mean`].
    pub fn set_aipp_dtc_pixel_min(
        &self,
        aipp: Handle,
        minima: [f32; 4],
        batch_index: u64,
    ) -> Answer {
        for min in minima {
            self.within("dtcPixelMin", min, (0.0, 255.0))?;
        }
        self.change_channels(aipp, batch_index, minima, |channel, min| channel.min = min)
    }

    /// `aclmdlSetAIPPPixelVarReci`: a factor for each channel.
    ///
    /// # Errors
    /// As for [`AclProcess::set_aipp_dtc_pixel_mean`], with factors outside -65504 and 65504.
    pub fn set_aipp_pixel_var_reci(
        &self,
        aipp: Handle,
        factors: [f32; 4],
        batch_index: u64,
    ) -> Answer {
        for factor in factors {
            self.within("dtcPixelVarReci", factor, (-FLOAT16_MAX, FLOAT16_MAX))?;
        }
        self.change_channels(aipp, batch_index, factors, |channel, factor| {
            channel.factor = factor;
        })
    }

    /// `aclmdlSetInputAIPP`: sets a copy of the parameters in a dataset, at the index of an input
    /// for parameters.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`; `INVALID_PARAM` for handles that are not a
    /// dataset or parameters, the index of another input, a missing buffer or address, and
    /// parameters that contradict each other or the model; `GE_DYNAMIC_INPUT_LENGTH_INVALID` for a
    /// buffer that is too short.
    pub fn set_input_aipp(
        &self,
        model_id: u32,
        dataset: Handle,
        index: usize,
        aipp: Handle,
    ) -> Answer {
        let description = self.described_input(model_id, index)?;
        let Some(input) = description.aipp_of_parameters(index) else {
            let reason = "expected the index of an input for parameters of AIPP, which \
                          aclmdlGetAippType gives";
            return Err(self.invalid("index", index, reason));
        };
        let mut objects = self.objects();
        // A copy: the program may destroy or change its parameters before the next execution.
        let parameters = objects.aipps.find(aipp)?.clone();
        let known = objects.datasets.find(dataset)?;
        let entry = known.entries.get(index).ok_or(INVALID_PARAM)?;
        let buffer = objects.buffers.find(entry.buffer)?;
        if buffer.address == 0 {
            return Err(INVALID_PARAM);
        }
        let n_needed = input.parameter_bytes();
        if buffer.size < n_needed {
            let text = format!(
                "input {index} takes {n_needed} bytes of parameters, its buffer has {}",
                buffer.size
            );
            return Err(self.inner_error(GE_DYNAMIC_INPUT_LENGTH_INVALID, &text));
        }
        let checked = input.check(&parameters);
        checked.map_err(|reason| self.invalid("aippParmsSet", aipp, &reason))?;
        // Nothing is written to the buffer: the vendor's structure is for the device, and programs
        // cannot read it either.
        let known = objects.datasets.find_mut(dataset)?;
        known.aipp.insert(index, Arc::new(parameters));
        Ok(())
    }

    /// `aclmdlSetAIPPByInputIndex`: the same at the index of the preprocessed input.
    ///
    /// # Errors
    /// As for [`AclProcess::set_input_aipp`], and `FAILURE` for an input without dynamic AIPP.
    pub fn set_aipp_by_input_index(
        &self,
        model_id: u32,
        dataset: Handle,
        index: usize,
        aipp: Handle,
    ) -> Answer {
        // The vendor checks handles before the input.
        self.objects().aipps.find(aipp)?;
        self.objects().datasets.find(dataset)?;
        let description = self.described_input(model_id, index)?;
        let AippRole::Dynamic(attached) = description.aipp_role(index) else {
            let text = format!("input {index} has no AIPP with parameters from the program");
            return Err(self.inner_error(FAILURE, &text));
        };
        self.set_input_aipp(model_id, dataset, attached, aipp)
    }

    fn change_aipp(&self, aipp: Handle, change: impl FnOnce(&mut AippParameters)) -> Answer {
        change(self.objects().aipps.find_mut(aipp)?);
        Ok(())
    }

    fn change_item(
        &self,
        aipp: Handle,
        batch_index: u64,
        change: impl FnOnce(&mut AippItem),
    ) -> Answer {
        let mut objects = self.objects();
        let items = &mut objects.aipps.find_mut(aipp)?.items;
        let n = items.len();
        let item = usize::try_from(batch_index)
            .ok()
            .and_then(|i| items.get_mut(i));
        let item = item.ok_or_else(|| {
            let reason = format!("the batch has {n} pictures");
            self.invalid("batchIndex", batch_index, &reason)
        })?;
        change(item);
        Ok(())
    }

    fn change_channels<N>(
        &self,
        aipp: Handle,
        batch_index: u64,
        numbers: [N; 4],
        change: fn(&mut Normalisation, N),
    ) -> Answer {
        self.change_item(aipp, batch_index, |item| {
            let channels = item.channels.iter_mut().zip(numbers);
            channels.for_each(|(channel, number)| change(channel, number));
        })
    }

    fn switched(&self, name: &str, switch: i8) -> Answer<bool> {
        self.within(name, switch, (0, 1))?;
        Ok(switch == 1)
    }

    fn size_within(&self, name: &str, value: i32, range: (i32, i32)) -> Answer<usize> {
        self.within(name, value, range)?;
        usize::try_from(value).map_err(|_| INVALID_PARAM)
    }

    fn within<T>(&self, name: &str, value: T, (least, most): (T, T)) -> Answer
    where
        T: PartialOrd + std::fmt::Display + Copy,
    {
        // Phrased so that NaN is outside.
        if value >= least && value <= most {
            return Ok(());
        }
        let reason = format!("expected {least} to {most}");
        Err(self.invalid(name, value, &reason))
    }

    fn invalid(
        &self,
        name: &str,
        value: impl std::fmt::Display + Copy,
        reason: &str,
    ) -> crate::Status {
        self.refuse(INVALID_PARAM, "EH0001", &[&value.to_string(), name, reason])
    }
}
