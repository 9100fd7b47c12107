//! The functions of media processing: the table from which each binding generates its functions.
//!
//! - `objects`: created, destroyed, and fields `set`, `get` or `both`: `acldvppSetPicDescData` is
//!   `acldvpp`, `Set`, the object's name in C and the field's, `dvpp_set_pic_desc_data` the same in
//!   Python;
//! - `refusals`: functions that need the hardware, with their names in C and in Python. The types
//!   are those of C's parameters;
//! - `refused_results`: the same, with results through C's pointers, which Python returns before
//!   the code.

/// Passes the table to a macro of the caller: `media_functions!(make)` calls `make!` with it.
#[macro_export]
macro_rules! media_functions {
    ($make:ident) => {
        $make! {
            // An object's prefixes and names in C and in Python, its kind and, in parentheses, the
            // parameters of the function that creates it. Types are C's, so that a binding
            // truncates numbers like C; enumerations are `int`, addresses a machine word. Fields
            // that are only read, such as channel IDs, stay 0: the hardware would set them. Batches
            // of pictures and histograms are missing: they hold more than numbers, so the bindings
            // write their functions by hand.
            objects {
                acldvpp dvpp PicDesc pic_desc PicDesc() {
                    both {
                        Data data: usize, Size size: u32, Format format: i32, Width width: u32,
                        Height height: u32, WidthStride width_stride: u32,
                        HeightStride height_stride: u32, RetCode ret_code: u32
                    }
                    set {}
                    get {}
                }
                acldvpp dvpp StreamDesc stream_desc StreamDesc() {
                    both {
                        Data data: usize, Size size: u32, Format format: i32,
                        Timestamp timestamp: u64, RetCode ret_code: u32, Eos eos: u8
                    }
                    set {}
                    get {}
                }
                acldvpp dvpp RoiConfig roi_config
                    RoiConfig(left: Left, right: Right, top: Top, bottom: Bottom) {
                    both {}
                    set { Left left: u32, Right right: u32, Top top: u32, Bottom bottom: u32 }
                    get {}
                }
                acldvpp dvpp ResizeConfig resize_config ResizeConfig() {
                    both { Interpolation interpolation: u32 }
                    set {}
                    get {}
                }
                acldvpp dvpp JpegeConfig jpege_config JpegeConfig() {
                    both { Level level: u32 }
                    set {}
                    get {}
                }
                acldvpp dvpp BorderConfig border_config BorderConfig() {
                    both {
                        BorderType border_type: i32, Top top: u32, Bottom bottom: u32,
                        Left left: u32, Right right: u32
                    }
                    set {}
                    get {}
                }
                acldvpp dvpp ChannelDesc channel_desc ChannelDesc() {
                    both {}
                    set { Mode mode: u32 }
                    get { ChannelId channel_id: u64 }
                }
                aclvdec vdec ChannelDesc channel_desc VdecChannelDesc() {
                    both {
                        ChannelId channel_id: u32, ThreadId thread_id: u64, EnType entype: i32,
                        OutPicFormat out_pic_format: i32, OutPicWidth out_pic_width: u32,
                        OutPicHeight out_pic_height: u32, RefFrameNum ref_frame_num: u32,
                        BitDepth bit_depth: u32, OutMode out_mode: u32
                    }
                    set {}
                    get {}
                }
                aclvdec vdec FrameConfig frame_config VdecFrameConfig() {
                    both {}
                    set {}
                    get {}
                }
                aclvenc venc ChannelDesc channel_desc VencChannelDesc() {
                    both {
                        ThreadId thread_id: u64, EnType entype: i32, PicFormat pic_format: i32,
                        PicWidth pic_width: u32, PicHeight pic_height: u32,
                        KeyFrameInterval key_frame_interval: u32, BufAddr buf_addr: usize,
                        BufSize buf_size: u32, RcMode rc_mode: u32, SrcRate src_rate: u32,
                        MaxBitRate max_bit_rate: u32
                    }
                    set {}
                    get { ChannelId channel_id: u32 }
                }
                aclvenc venc FrameConfig frame_config VencFrameConfig() {
                    both { ForceIFrame force_i_frame: u8, Eos eos: u8 }
                    set {}
                    get {}
                }
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
