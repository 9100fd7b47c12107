//! The second interface of media processing, with the prefix `hi_`: only memory and the start and
//! end of its system work.

use opscope_acl::MEDIA_ADVICE;

use crate::border::{call, process};
use crate::pointer::OutPointer;
use crate::table::{codes, refusals, results, values};

// The device number is ignored: there is one memory.
results! {
    hi_mpi_dvpp_malloc(_dev_id: u32, dev_ptr: OutPointer<usize>, size: usize)
        => dev_ptr = process().malloc(size, 0)?;
}

codes! {
    hi_mpi_dvpp_free(address: usize) => process().free(address);
    // Programs call it first and give up if it fails, before they allocate memory.
    hi_mpi_sys_init() => Ok(());
    hi_mpi_sys_full_init() => Ok(());
    hi_mpi_sys_exit() => Ok(());
}

values! {
    hi_mpi_vdec_get_fd(_chn: i32) -> i32 => no_descriptor("hi_mpi_vdec_get_fd"), or -1;
    hi_mpi_venc_get_fd(_chn: i32) -> i32 => no_descriptor("hi_mpi_venc_get_fd"), or -1;
}

/// Refuses a descriptor with -1. Status codes are positive and would look like a descriptor.
fn no_descriptor(function: &str) -> i32 {
    let _ = call(|| Err(process().refuse_function(function, MEDIA_ADVICE)));
    -1
}

/// `hi_vpc_make_border_info`, which is passed by value and ignored.
#[repr(C)]
struct MakeBorderInfo {
    sides: [u32; 4],
    kind: i32,
    values: [f64; 4],
}

refusals! {
    because MEDIA_ADVICE;
    hi_mpi_sys_create_epoll(i32, usize);
    hi_mpi_sys_ctl_epoll(i32, i32, i32, usize);
    hi_mpi_sys_wait_epoll(i32, usize, i32, i32, usize);
    hi_mpi_sys_close_epoll(i32);
    hi_mpi_sys_set_chn_csc_matrix(i32, i32, i32, usize);
    hi_mpi_sys_get_chn_csc_matrix(i32, i32, usize, usize);
    hi_mpi_sys_bind(usize, usize);
    hi_mpi_sys_unbind(usize, usize);
    hi_mpi_sys_get_image_align_info(usize, u32, usize, usize);
    hi_vdec_get_pic_buf_size(i32, usize) -> u32;
    hi_vdec_get_tmv_buf_size(i32, u32, u32) -> u32;
    hi_mpi_vdec_create_chn(i32, usize);
    hi_mpi_vdec_destroy_chn(i32);
    hi_mpi_vdec_set_chn_attr(i32, usize);
    hi_mpi_vdec_get_chn_attr(i32, usize);
    hi_mpi_vdec_set_protocol_param(i32, usize);
    hi_mpi_vdec_get_protocol_param(i32, usize);
    hi_mpi_vdec_start_recv_stream(i32);
    hi_mpi_vdec_stop_recv_stream(i32);
    hi_mpi_vdec_query_status(i32, usize);
    hi_mpi_vdec_reset_chn(i32);
    hi_mpi_vdec_set_chn_param(i32, usize);
    hi_mpi_vdec_get_chn_param(i32, usize);
    hi_mpi_vdec_send_stream(i32, usize, usize, i32);
    hi_mpi_vdec_get_frame(i32, usize, usize, usize, i32);
    hi_mpi_vdec_release_frame(i32, usize);
    hi_mpi_vdec_close_fd(i32);
    hi_mpi_dvpp_get_image_info(i32, usize, usize);
    hi_mpi_vdec_get_jpegd_output_info(usize, i32, usize);
    hi_mpi_vdec_set_jpegd_precision_mode(i32, i32);
    hi_mpi_pngd_create_chn(i32, usize);
    hi_mpi_pngd_destroy_chn(i32);
    hi_mpi_pngd_send_stream(i32, usize, usize, i32);
    hi_mpi_pngd_get_image_data(i32, usize, usize, i32);
    hi_mpi_png_get_image_info(usize, usize);
    hi_mpi_vpc_median_blur(i32, usize, usize, i32);
    hi_mpi_vpc_erode(i32, usize, usize, i32);
    hi_mpi_vpc_dilate(i32, usize, usize, i32);
    hi_mpi_vpc_blur(i32, usize, usize, i32);
    hi_mpi_vpc_gaussian_blur(i32, usize, usize, i32);
    hi_mpi_vpc_filter2d(i32, usize, usize, i32);
    hi_mpi_vpc_rotate(i32, usize, usize, i32);
    hi_mpi_vpc_draw_mosaic(i32, usize, usize, i32);
    hi_mpi_vpc_draw_cover(i32, usize, usize, i32);
    hi_mpi_vpc_draw_line(i32, usize, usize, i32);
    hi_mpi_vpc_draw_osd(i32, usize, usize, i32);
    hi_mpi_vpc_create_chn(i32, usize);
    hi_mpi_vpc_sys_create_chn(usize, usize);
    hi_mpi_vpc_destroy_chn(i32);
    hi_mpi_vpc_crop(i32, usize, usize, u32, usize, i32);
    hi_mpi_vpc_resize(i32, usize, usize, f64, f64, u32, usize, i32);
    hi_mpi_vpc_crop_resize(i32, usize, usize, u32, usize, i32);
    hi_mpi_vpc_crop_resize_paste(i32, usize, usize, u32, usize, i32);
    hi_mpi_vpc_batch_crop_resize_paste(i32, usize, u32, usize, usize, usize, i32);
    hi_mpi_vpc_crop_resize_make_border(i32, usize, usize, u32, usize, i32);
    hi_mpi_vpc_batch_crop_resize_make_border(i32, usize, u32, usize, usize, usize, i32);
    hi_mpi_vpc_crop_resize_resize_paste(i32, usize, usize, u32, usize, i32);
    hi_mpi_vpc_convert_color(i32, usize, usize, usize, i32);
    hi_mpi_vpc_convert_color_to_yuv420(i32, usize, usize, usize, i32);
    hi_mpi_vpc_convert_color_v2(i32, usize, usize, usize, usize, i32);
    hi_mpi_vpc_copy_make_border(i32, usize, usize, MakeBorderInfo, usize, i32);
    hi_mpi_vpc_pyrdown(i32, usize, usize, u32, usize, u16, MakeBorderInfo, usize, i32);
    hi_mpi_vpc_calc_hist(i32, usize, usize, usize, i32);
    hi_mpi_vpc_equalize_hist(i32, usize, usize, usize, usize, i32);
    hi_mpi_vpc_get_process_result(i32, u32, i32);
    hi_mpi_vpc_set_roundview_stitching_param(i32, usize);
    hi_mpi_vpc_get_roundview_stitching_param(i32, usize);
    hi_mpi_vpc_roundview_stitching(i32, usize, usize, i32);
    hi_mpi_venc_create_chn(i32, usize);
    hi_mpi_venc_destroy_chn(i32);
    hi_mpi_venc_start_chn(i32, usize);
    hi_mpi_venc_stop_chn(i32);
    hi_mpi_venc_query_status(i32, usize);
    hi_mpi_venc_get_stream(i32, usize, i32);
    hi_mpi_venc_release_stream(i32, usize);
    hi_mpi_venc_send_frame(i32, usize, i32);
    hi_mpi_venc_send_jpege_frame(i32, usize, usize, i32);
    hi_mpi_venc_get_jpege_predicted_size(usize, usize, usize);
    hi_mpi_venc_close_fd(i32);
    hi_mpi_venc_set_chn_param(i32, usize);
    hi_mpi_venc_set_mod_param(usize);
    hi_mpi_venc_get_mod_param(usize);
    hi_mpi_venc_set_jpeg_param(i32, usize);
    hi_mpi_venc_get_jpeg_param(i32, usize);
    hi_mpi_venc_set_jpeg_huffman_param(i32, usize);
    hi_mpi_venc_get_jpeg_huffman_param(i32, usize);
    hi_mpi_venc_compact_jpeg_tables(i32, u32, i32);
    hi_mpi_venc_request_idr(i32, i32);
    hi_mpi_venc_set_scene_mode(i32, i32);
    hi_mpi_venc_set_rc_param(i32, usize);
    hi_mpi_venc_get_rc_param(i32, usize);
    hi_mpi_dvpp_get_version(usize, usize, usize);
}
