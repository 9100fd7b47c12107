//! AIPP: asking how inputs are prepared, and setting the parameters of those that a program
//! prepares.

use std::sync::Arc;

use opscope_store::file_format::gears_json::AippInputFormat;

use crate::aipp::{AippItem, AippParameters, ColourConversion, Crop, ITEMS_MAX, Padding};
use crate::handle::Handle;
use crate::model::{AippInfo, AippRole, ModelDesc, parameter_bytes};
use crate::status::{FAILURE, GE_AIPP_NOT_EXIST, GE_DYNAMIC_INPUT_LENGTH_INVALID, INVALID_PARAM};
use crate::{AclProcess, Answer};

/// `ACL_INVALID_NODE_INDEX`: there is no such input.
const NO_INDEX: usize = 0xFFFF_FFFF;
/// Widest and highest picture.
const EXTENT_MAX: i32 = 4096;
/// Smallest picture that is scaled, and the widest that scaling may make.
const SCALED_MIN: i32 = 16;
const SCALED_WIDTH_MAX: i32 = 1920;
/// Most rows or columns of padding on a side.
const PADDING_MAX: i32 = 32;
/// Range of an element of the matrix, as the vendor's documents have it.
const MATRIX_RANGE: (i32, i32) = (-32_677, 32_676);
/// The largest finite float16.
const FLOAT16_MAX: f32 = 65_504.0;

impl AclProcess {
    /// `aclmdlGetAippType`: the number of `aclmdlInputAippType` of an input, and the index of the
    /// input that takes its parameters; `0xFFFFFFFF` if there is none such.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`, `INVALID_PARAM` for an index that is too
    /// large.
    pub fn aipp_type(&self, model_id: u32, index: usize) -> Answer<(i32, usize)> {
        let description = self.described_input(model_id, index)?;
        let role = description.aipp_role(index);
        let attached = match role {
            AippRole::Dynamic(attached) => attached,
            AippRole::None | AippRole::Static | AippRole::Parameters => NO_INDEX,
        };
        Ok((role.number(), attached))
    }

    /// `aclmdlGetFirstAippInfo`: how an input is prepared. An input for parameters gives what the
    /// input gives that they are for.
    ///
    /// # Errors
    /// As for [`AclProcess::aipp_type`], and `GE_AIPP_NOT_EXIST` for an input that is not prepared.
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
    /// is off or 0, and format and size have to be set.
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
        // A number that is none would take all memory for parameters.
        let counted = usize::try_from(n)
            .ok()
            .filter(|n| (1..=ITEMS_MAX).contains(n));
        counted.ok_or_else(|| {
            let reason = format!("expected 1 to {ITEMS_MAX}");
            self.invalid("batchSize", n, &reason)
        })
    }

    /// `aclmdlDestroyAIPP`. Datasets keep what they were given.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, one of parameters.
    pub fn destroy_aipp(&self, aipp: Handle) -> Answer {
        let ended = self.objects().aipps.take(aipp);
        ended.map(drop)
    }

    /// `aclmdlSetAIPPInputFormat`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, and for another format than
    /// YUV420SP_U8, XRGB8888_U8, RGB888_U8 and YUV400_U8.
    pub fn set_aipp_input_format(&self, aipp: Handle, number: i32) -> Answer {
        let format = AippInputFormat::from_number(number).ok_or_else(|| {
            let reason =
                "expected YUV420SP_U8 (1), XRGB8888_U8 (2), RGB888_U8 (3) or YUV400_U8 (4)";
            self.invalid("inputFormat", number, reason)
        })?;
        self.change_aipp(aipp, |parameters| parameters.format = format)
    }

    /// `aclmdlSetAIPPCscParams`: whether colours are converted, with a matrix row by row, offsets
    /// that are added after it, and offsets that are subtracted before it.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, a switch other than 0 and 1, and
    /// elements outside -32677 and 32676.
    pub fn set_aipp_csc_params(
        &self,
        aipp: Handle,
        switch: i8,
        matrix: [i16; 9],
        output_biases: [u8; 3],
        input_biases: [u8; 3],
    ) -> Answer {
        // A matrix that is switched off is not looked at, as by the vendor.
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

    /// `aclmdlSetAIPPRbuvSwapSwitch`: whether R and B, or U and V, change places.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, and a switch other than 0 and 1.
    pub fn set_aipp_rbuv_swap_switch(&self, aipp: Handle, switch: i8) -> Answer {
        let is_on = self.switched("rbuvSwapSwitch", switch)?;
        self.change_aipp(aipp, |parameters| parameters.rbuv_swap = is_on)
    }

    /// `aclmdlSetAIPPAxSwapSwitch`: whether the first of four channels is passed over, and not the
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
    /// `INVALID_PARAM` for a handle that is not one of parameters, a width outside 2 and 4096, and
    /// a height outside 1 and 4096.
    pub fn set_aipp_src_image_size(&self, aipp: Handle, width: i32, height: i32) -> Answer {
        let width = self.size_within("srcImageSizeW", width, (2, EXTENT_MAX))?;
        let height = self.size_within("srcImageSizeH", height, (1, EXTENT_MAX))?;
        self.change_aipp(aipp, |parameters| {
            (parameters.width, parameters.height) = (width, height);
        })
    }

    /// `aclmdlSetAIPPScfParams`: whether a picture is scaled, from a width and height to others.
    /// Scaling is refused when the parameters are given to a dataset, as by the vendor.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, a picture that the batch does
    /// not have, a switch other than 0 and 1, and sizes outside 16 and 4096, for the width that
    /// comes out 1920.
    pub fn set_aipp_scf_params(
        &self,
        aipp: Handle,
        switch: i8,
        from: [i32; 2],
        to: [i32; 2],
        batch_index: u64,
    ) -> Answer {
        let is_on = self.switched("scfSwitch", switch)?;
        // Sizes of what is switched off are not looked at, as by the vendor.
        if is_on {
            self.size_within("scfInputSizeW", from[0], (SCALED_MIN, EXTENT_MAX))?;
            self.size_within("scfInputSizeH", from[1], (SCALED_MIN, EXTENT_MAX))?;
            self.size_within("scfOutputSizeW", to[0], (SCALED_MIN, SCALED_WIDTH_MAX))?;
            self.size_within("scfOutputSizeH", to[1], (SCALED_MIN, EXTENT_MAX))?;
        }
        self.change_item(aipp, batch_index, |item| item.is_scaled = is_on)
    }

    /// `aclmdlSetAIPPCropParams`: whether a part of a picture is cut out, from a column and row on
    /// and of a width and height.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, a picture that the batch does
    /// not have, a switch other than 0 and 1, a start outside 0 and 4095, and a size outside 1 and
    /// 4096.
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

    /// `aclmdlSetAIPPPaddingParams`: whether rows and columns of zeroes are added above, below, on
    /// the left and on the right.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, a picture that the batch does
    /// not have, a switch other than 0 and 1, and numbers outside 0 and 32.
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

    /// `aclmdlSetAIPPDtcPixelMean`: a mean for each channel, which is subtracted.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not one of parameters, a picture that the batch does
    /// not have, and means outside 0 and 255.
    pub fn set_aipp_dtc_pixel_mean(
        &self,
        aipp: Handle,
        means: [i16; 4],
        batch_index: u64,
    ) -> Answer {
        for mean in means {
            self.within("dtcPixelMean", mean, (0, 255))?;
        }
        self.change_item(aipp, batch_index, |item| {
            for (channel, mean) in item.channels.iter_mut().zip(means) {
                channel.mean = f32::from(mean);
            }
        })
    }

    /// `aclmdlSetAIPPDtcPixelMin`: a minimum for each channel, which is subtracted too.
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
        self.change_item(aipp, batch_index, |item| {
            for (channel, min) in item.channels.iter_mut().zip(minima) {
                channel.min = min;
            }
        })
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
        self.change_item(aipp, batch_index, |item| {
            for (channel, factor) in item.channels.iter_mut().zip(factors) {
                channel.factor = factor;
            }
        })
    }

    /// `aclmdlSetInputAIPP`: gives a dataset a copy of parameters, at the index of an input for
    /// parameters.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`; `INVALID_PARAM` for handles that are not a
    /// dataset or parameters, an index of another input, no buffer or no address there, and
    /// parameters that contradict each other or do not fit the model;
    /// `GE_DYNAMIC_INPUT_LENGTH_INVALID` for a buffer that is too short.
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
        // A copy: the program may destroy its own, or change it for the next execution.
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
        // Nothing is written to the buffer: the program cannot read the vendor's structure there
        // either, as it is the device's.
        let known = objects.datasets.find_mut(dataset)?;
        known.aipp.insert(index, Arc::new(parameters));
        Ok(())
    }

    /// `aclmdlSetAIPPByInputIndex`: the same at the index of the input that is prepared.
    ///
    /// # Errors
    /// As for [`AclProcess::set_input_aipp`], and `FAILURE` for an input that is not prepared with
    /// parameters of the program's.
    pub fn set_aipp_by_input_index(
        &self,
        model_id: u32,
        dataset: Handle,
        index: usize,
        aipp: Handle,
    ) -> Answer {
        // In the vendor's order: wrong handles come before a wrong input.
        self.objects().aipps.find(aipp)?;
        self.objects().datasets.find(dataset)?;
        let description = self.described_input(model_id, index)?;
        let AippRole::Dynamic(attached) = description.aipp_role(index) else {
            let text = format!("input {index} is not prepared with parameters of the program's");
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
        // Written so that NaN is outside.
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
