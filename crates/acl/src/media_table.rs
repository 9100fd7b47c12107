//! The functions of media processing: the table from which each binding generates its functions.
//!
//! A row has the function's name in C, the name in Python, and its action:
//!
//! - `creators`: creates an object; parameters in parentheses are initial values of fields;
//! - `destroyers`: destroys one of that kind;
//! - `setters` and `getters`: set or return a field of an object, with its type in C;
//! - `refusals`: need the hardware. The types are those of C's parameters;
//! - `refused_results`: the same, with results through C's pointers, which Python returns before
//!   the code.

/// Passes the table to a macro of the caller: `media_functions!(make)` calls `make!` with it.
#[macro_export]
macro_rules! media_functions {
    ($make:ident) => {
        $make! {
            // Each row names both functions in full, because declarative macros cannot concatenate
            // names.
            creators {
                acldvppCreateChannelDesc dvpp_create_channel_desc ChannelDesc();
                acldvppCreatePicDesc dvpp_create_pic_desc PicDesc();
                acldvppCreateRoiConfig dvpp_create_roi_config
                    RoiConfig(left: Left, right: Right, top: Top, bottom: Bottom);
                acldvppCreateResizeConfig dvpp_create_resize_config ResizeConfig();
                acldvppCreateJpegeConfig dvpp_create_jpege_config JpegeConfig();
                aclvdecCreateChannelDesc vdec_create_channel_desc VdecChannelDesc();
                aclvencCreateChannelDesc venc_create_channel_desc VencChannelDesc();
                aclvencCreateFrameConfig venc_create_frame_config VencFrameConfig();
                acldvppCreateStreamDesc dvpp_create_stream_desc StreamDesc();
                aclvdecCreateFrameConfig vdec_create_frame_config VdecFrameConfig();
                acldvppCreateBorderConfig dvpp_create_border_config BorderConfig();
            }
            // Batches of pictures and histograms are missing here and above: they hold more than
            // numbers, so the bindings write their functions by hand.
            destroyers {
                acldvppDestroyChannelDesc dvpp_destroy_channel_desc ChannelDesc;
                acldvppDestroyPicDesc dvpp_destroy_pic_desc PicDesc;
                acldvppDestroyRoiConfig dvpp_destroy_roi_config RoiConfig;
                acldvppDestroyResizeConfig dvpp_destroy_resize_config ResizeConfig;
                acldvppDestroyJpegeConfig dvpp_destroy_jpege_config JpegeConfig;
                aclvdecDestroyChannelDesc vdec_destroy_channel_desc VdecChannelDesc;
                aclvencDestroyChannelDesc venc_destroy_channel_desc VencChannelDesc;
                aclvencDestroyFrameConfig venc_destroy_frame_config VencFrameConfig;
                acldvppDestroyStreamDesc dvpp_destroy_stream_desc StreamDesc;
                aclvdecDestroyFrameConfig vdec_destroy_frame_config VdecFrameConfig;
                acldvppDestroyBorderConfig dvpp_destroy_border_config BorderConfig;
            }
            // Types are C's, so that a binding truncates numbers like C; enumerations are `int`,
            // addresses a machine word.
            setters {
                acldvppSetPicDescData dvpp_set_pic_desc_data PicDesc.Data: usize;
                acldvppSetPicDescSize dvpp_set_pic_desc_size PicDesc.Size: u32;
                acldvppSetPicDescFormat dvpp_set_pic_desc_format PicDesc.Format: i32;
                acldvppSetPicDescWidth dvpp_set_pic_desc_width PicDesc.Width: u32;
                acldvppSetPicDescHeight dvpp_set_pic_desc_height PicDesc.Height: u32;
                acldvppSetPicDescWidthStride dvpp_set_pic_desc_width_stride
                    PicDesc.WidthStride: u32;
                acldvppSetPicDescHeightStride dvpp_set_pic_desc_height_stride
                    PicDesc.HeightStride: u32;
                acldvppSetPicDescRetCode dvpp_set_pic_desc_ret_code PicDesc.RetCode: u32;
                acldvppSetStreamDescData dvpp_set_stream_desc_data StreamDesc.Data: usize;
                acldvppSetStreamDescSize dvpp_set_stream_desc_size StreamDesc.Size: u32;
                acldvppSetStreamDescFormat dvpp_set_stream_desc_format StreamDesc.Format: i32;
                acldvppSetStreamDescTimestamp dvpp_set_stream_desc_timestamp
                    StreamDesc.Timestamp: u64;
                acldvppSetStreamDescRetCode dvpp_set_stream_desc_ret_code StreamDesc.RetCode: u32;
                acldvppSetStreamDescEos dvpp_set_stream_desc_eos StreamDesc.Eos: u8;
                acldvppSetRoiConfigLeft dvpp_set_roi_config_left RoiConfig.Left: u32;
                acldvppSetRoiConfigRight dvpp_set_roi_config_right RoiConfig.Right: u32;
                acldvppSetRoiConfigTop dvpp_set_roi_config_top RoiConfig.Top: u32;
                acldvppSetRoiConfigBottom dvpp_set_roi_config_bottom RoiConfig.Bottom: u32;
                acldvppSetResizeConfigInterpolation dvpp_set_resize_config_interpolation
                    ResizeConfig.Interpolation: u32;
                acldvppSetJpegeConfigLevel dvpp_set_jpege_config_level JpegeConfig.Level: u32;
                acldvppSetBorderConfigBorderType dvpp_set_border_config_border_type
                    BorderConfig.BorderType: i32;
                acldvppSetBorderConfigTop dvpp_set_border_config_top BorderConfig.Top: u32;
                acldvppSetBorderConfigBottom dvpp_set_border_config_bottom BorderConfig.Bottom: u32;
                acldvppSetBorderConfigLeft dvpp_set_border_config_left BorderConfig.Left: u32;
                acldvppSetBorderConfigRight dvpp_set_border_config_right BorderConfig.Right: u32;
                acldvppSetChannelDescMode dvpp_set_channel_desc_mode ChannelDesc.Mode: u32;
                aclvdecSetChannelDescChannelId vdec_set_channel_desc_channel_id
                    VdecChannelDesc.ChannelId: u32;
                aclvdecSetChannelDescThreadId vdec_set_channel_desc_thread_id
                    VdecChannelDesc.ThreadId: u64;
                aclvdecSetChannelDescEnType vdec_set_channel_desc_entype
                    VdecChannelDesc.EnType: i32;
                aclvdecSetChannelDescOutPicFormat vdec_set_channel_desc_out_pic_format
                    VdecChannelDesc.OutPicFormat: i32;
                aclvdecSetChannelDescOutPicWidth vdec_set_channel_desc_out_pic_width
                    VdecChannelDesc.OutPicWidth: u32;
                aclvdecSetChannelDescOutPicHeight vdec_set_channel_desc_out_pic_height
                    VdecChannelDesc.OutPicHeight: u32;
                aclvdecSetChannelDescRefFrameNum vdec_set_channel_desc_ref_frame_num
                    VdecChannelDesc.RefFrameNum: u32;
                aclvdecSetChannelDescBitDepth vdec_set_channel_desc_bit_depth
                    VdecChannelDesc.BitDepth: u32;
                aclvdecSetChannelDescOutMode vdec_set_channel_desc_out_mode
                    VdecChannelDesc.OutMode: u32;
                aclvencSetChannelDescThreadId venc_set_channel_desc_thread_id
                    VencChannelDesc.ThreadId: u64;
                aclvencSetChannelDescEnType venc_set_channel_desc_entype
                    VencChannelDesc.EnType: i32;
                aclvencSetChannelDescPicFormat venc_set_channel_desc_pic_format
                    VencChannelDesc.PicFormat: i32;
                aclvencSetChannelDescPicWidth venc_set_channel_desc_pic_width
                    VencChannelDesc.PicWidth: u32;
                aclvencSetChannelDescPicHeight venc_set_channel_desc_pic_height
                    VencChannelDesc.PicHeight: u32;
                aclvencSetChannelDescKeyFrameInterval venc_set_channel_desc_key_frame_interval
                    VencChannelDesc.KeyFrameInterval: u32;
                aclvencSetChannelDescBufAddr venc_set_channel_desc_buf_addr
                    VencChannelDesc.BufAddr: usize;
                aclvencSetChannelDescBufSize venc_set_channel_desc_buf_size
                    VencChannelDesc.BufSize: u32;
                aclvencSetChannelDescRcMode venc_set_channel_desc_rc_mode
                    VencChannelDesc.RcMode: u32;
                aclvencSetChannelDescSrcRate venc_set_channel_desc_src_rate
                    VencChannelDesc.SrcRate: u32;
                aclvencSetChannelDescMaxBitRate venc_set_channel_desc_max_bit_rate
                    VencChannelDesc.MaxBitRate: u32;
                aclvencSetFrameConfigForceIFrame venc_set_frame_config_force_i_frame
                    VencFrameConfig.ForceIFrame: u8;
                aclvencSetFrameConfigEos venc_set_frame_config_eos VencFrameConfig.Eos: u8;
            }
            // Getters without a setter, such as those of channel IDs, return 0: the hardware would
            // have set the field.
            getters {
                acldvppGetPicDescData dvpp_get_pic_desc_data PicDesc.Data: usize;
                acldvppGetPicDescSize dvpp_get_pic_desc_size PicDesc.Size: u32;
                acldvppGetPicDescFormat dvpp_get_pic_desc_format PicDesc.Format: i32;
                acldvppGetPicDescWidth dvpp_get_pic_desc_width PicDesc.Width: u32;
                acldvppGetPicDescHeight dvpp_get_pic_desc_height PicDesc.Height: u32;
                acldvppGetPicDescWidthStride dvpp_get_pic_desc_width_stride
                    PicDesc.WidthStride: u32;
                acldvppGetPicDescHeightStride dvpp_get_pic_desc_height_stride
                    PicDesc.HeightStride: u32;
                acldvppGetPicDescRetCode dvpp_get_pic_desc_ret_code PicDesc.RetCode: u32;
                acldvppGetStreamDescData dvpp_get_stream_desc_data StreamDesc.Data: usize;
                acldvppGetStreamDescSize dvpp_get_stream_desc_size StreamDesc.Size: u32;
                acldvppGetStreamDescFormat dvpp_get_stream_desc_format StreamDesc.Format: i32;
                acldvppGetStreamDescTimestamp dvpp_get_stream_desc_timestamp
                    StreamDesc.Timestamp: u64;
                acldvppGetStreamDescRetCode dvpp_get_stream_desc_ret_code StreamDesc.RetCode: u32;
                acldvppGetStreamDescEos dvpp_get_stream_desc_eos StreamDesc.Eos: u8;
                acldvppGetResizeConfigInterpolation dvpp_get_resize_config_interpolation
                    ResizeConfig.Interpolation: u32;
                acldvppGetJpegeConfigLevel dvpp_get_jpege_config_level JpegeConfig.Level: u32;
                acldvppGetBorderConfigBorderType dvpp_get_border_config_border_type
                    BorderConfig.BorderType: i32;
                acldvppGetBorderConfigTop dvpp_get_border_config_top BorderConfig.Top: u32;
                acldvppGetBorderConfigBottom dvpp_get_border_config_bottom BorderConfig.Bottom: u32;
                acldvppGetBorderConfigLeft dvpp_get_border_config_left BorderConfig.Left: u32;
                acldvppGetBorderConfigRight dvpp_get_border_config_right BorderConfig.Right: u32;
                acldvppGetChannelDescChannelId dvpp_get_channel_desc_channel_id
                    ChannelDesc.ChannelId: u64;
                aclvdecGetChannelDescChannelId vdec_get_channel_desc_channel_id
                    VdecChannelDesc.ChannelId: u32;
                aclvdecGetChannelDescThreadId vdec_get_channel_desc_thread_id
                    VdecChannelDesc.ThreadId: u64;
                aclvdecGetChannelDescEnType vdec_get_channel_desc_entype
                    VdecChannelDesc.EnType: i32;
                aclvdecGetChannelDescOutPicFormat vdec_get_channel_desc_out_pic_format
                    VdecChannelDesc.OutPicFormat: i32;
                aclvdecGetChannelDescOutPicWidth vdec_get_channel_desc_out_pic_width
                    VdecChannelDesc.OutPicWidth: u32;
                aclvdecGetChannelDescOutPicHeight vdec_get_channel_desc_out_pic_height
                    VdecChannelDesc.OutPicHeight: u32;
                aclvdecGetChannelDescBitDepth vdec_get_channel_desc_bit_depth
                    VdecChannelDesc.BitDepth: u32;
                aclvdecGetChannelDescRefFrameNum vdec_get_channel_desc_ref_frame_num
                    VdecChannelDesc.RefFrameNum: u32;
                aclvdecGetChannelDescOutMode vdec_get_channel_desc_out_mode
                    VdecChannelDesc.OutMode: u32;
                aclvencGetChannelDescBufAddr venc_get_channel_desc_buf_addr
                    VencChannelDesc.BufAddr: usize;
                aclvencGetChannelDescBufSize venc_get_channel_desc_buf_size
                    VencChannelDesc.BufSize: u32;
                aclvencGetChannelDescChannelId venc_get_channel_desc_channel_id
                    VencChannelDesc.ChannelId: u32;
                aclvencGetChannelDescThreadId venc_get_channel_desc_thread_id
                    VencChannelDesc.ThreadId: u64;
                aclvencGetChannelDescEnType venc_get_channel_desc_entype
                    VencChannelDesc.EnType: i32;
                aclvencGetChannelDescPicFormat venc_get_channel_desc_pic_format
                    VencChannelDesc.PicFormat: i32;
                aclvencGetChannelDescPicWidth venc_get_channel_desc_pic_width
                    VencChannelDesc.PicWidth: u32;
                aclvencGetChannelDescPicHeight venc_get_channel_desc_pic_height
                    VencChannelDesc.PicHeight: u32;
                aclvencGetChannelDescKeyFrameInterval venc_get_channel_desc_key_frame_interval
                    VencChannelDesc.KeyFrameInterval: u32;
                aclvencGetChannelDescRcMode venc_get_channel_desc_rc_mode
                    VencChannelDesc.RcMode: u32;
                aclvencGetChannelDescSrcRate venc_get_channel_desc_src_rate
                    VencChannelDesc.SrcRate: u32;
                aclvencGetChannelDescMaxBitRate venc_get_channel_desc_max_bit_rate
                    VencChannelDesc.MaxBitRate: u32;
                aclvencGetFrameConfigForceIFrame venc_get_frame_config_force_i_frame
                    VencFrameConfig.ForceIFrame: u8;
                aclvencGetFrameConfigEos venc_get_frame_config_eos VencFrameConfig.Eos: u8;
            }
            // The number of parameters and their classes are kept, because a C caller passes them
            // in registers and on the stack in any case.
            refusals {
                aclvencCreateChannel(usize) venc_create_channel;
                aclvencDestroyChannel(usize) venc_destroy_channel;
                aclvencSendFrame(usize, usize, usize, usize, usize) venc_send_frame;
                acldvppCreateChannel(usize) dvpp_create_channel;
                acldvppDestroyChannel(usize) dvpp_destroy_channel;
                acldvppVpcResizeAsync(usize, usize, usize, usize, usize) dvpp_vpc_resize_async;
                acldvppVpcCropAsync(usize, usize, usize, usize, usize) dvpp_vpc_crop_async;
                acldvppVpcCropResizeAsync(usize, usize, usize, usize, usize, usize)
                    dvpp_vpc_crop_resize_async;
                acldvppVpcBatchCropAsync(usize, usize, usize, u32, usize, usize, usize)
                    dvpp_vpc_batch_crop_async;
                acldvppVpcBatchCropResizeAsync(usize, usize, usize, u32, usize, usize, usize, usize)
                    dvpp_vpc_batch_crop_resize_async;
                acldvppVpcCropAndPasteAsync(usize, usize, usize, usize, usize, usize)
                    dvpp_vpc_crop_and_paste_async;
                acldvppVpcCropResizePasteAsync(usize, usize, usize, usize, usize, usize, usize)
                    dvpp_vpc_crop_resize_paste_async;
                acldvppVpcBatchCropAndPasteAsync(usize, usize, usize, u32, usize, usize, usize,
                    usize) dvpp_vpc_batch_crop_and_paste_async;
                acldvppVpcBatchCropResizePasteAsync(usize, usize, usize, u32, usize, usize, usize,
                    usize, usize) dvpp_vpc_batch_crop_resize_paste_async;
                acldvppJpegDecodeAsync(usize, usize, u32, usize, usize) dvpp_jpeg_decode_async;
                acldvppJpegEncodeAsync(usize, usize, usize, usize, usize, usize)
                    dvpp_jpeg_encode_async;
                acldvppPngDecodeAsync(usize, usize, u32, usize, usize) dvpp_png_decode_async;
                aclvdecCreateChannel(usize) vdec_create_channel;
                aclvdecDestroyChannel(usize) vdec_destroy_channel;
                aclvdecSendFrame(usize, usize, usize, usize, usize) vdec_send_frame;
                aclvdecSendSkippedFrame(usize, usize, usize, usize) vdec_send_skipped_frame;
                acldvppVpcConvertColorAsync(usize, usize, usize, usize)
                    dvpp_vpc_convert_color_async;
                acldvppVpcPyrDownAsync(usize, usize, usize, usize, usize) dvpp_vpc_pyr_down_async;
                acldvppDestroyLutMap(usize) dvpp_destroy_lut_map;
                acldvppVpcEqualizeHistAsync(usize, usize, usize, usize, usize)
                    dvpp_vpc_equalize_hist_async;
                acldvppVpcMakeBorderAsync(usize, usize, usize, usize, usize)
                    dvpp_vpc_make_border_async;
                acldvppVpcCalcHistAsync(usize, usize, usize, usize, usize) dvpp_vpc_calc_hist_async;
                acldvppDestroyHist(usize) dvpp_destroy_hist;
                acldvppClearHist(usize) dvpp_clear_hist;
                acldvppVpcBatchCropResizeMakeBorderAsync(usize, usize, usize, u32, usize, usize,
                    usize, usize, usize) dvpp_vpc_batch_crop_resize_make_border_async;
            }
            // A Python program unpacks such a result, so the number of results matters too.
            refused_results {
                acldvppJpegGetImageInfo(usize, u32, usize, usize, usize) dvpp_jpeg_get_image_info
                    [0, 0, 0];
                acldvppJpegGetImageInfoV2(usize, u32, usize, usize, usize, usize)
                    dvpp_jpeg_get_image_info_v2 [0, 0, 0, 0];
                acldvppJpegPredictEncSize(usize, usize, usize) dvpp_jpeg_predict_enc_size [0];
                acldvppJpegPredictDecSize(usize, u32, i32, usize) dvpp_jpeg_predict_dec_size [0];
                acldvppPngGetImageInfo(usize, u32, usize, usize, usize) dvpp_png_get_image_info
                    [0, 0, 0];
                acldvppPngPredictDecSize(usize, u32, i32, usize) dvpp_png_predict_dec_size [0];
            }
        }
    };
}
