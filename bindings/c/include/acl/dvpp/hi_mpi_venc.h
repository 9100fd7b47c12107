#ifndef OPSCOPE_ACL_DVPP_HI_MPI_VENC_H
#define OPSCOPE_ACL_DVPP_HI_MPI_VENC_H

/* Encoders of videos and JPEG pictures, which are not supported. */

#include "acl/dvpp/hi_media_common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HI_VENC_MAX_PACK_INFO_NUM 8
#define HI_VENC_MAX_MPF_NUM 2
#define HI_VENC_PRORES_MAX_ID_CHAR_NUM 4
#define HI_VENC_JPEG_QT_COEF_NUM 64
#define HI_VENC_QP_HIST_NUM 52
#define HI_VENC_MAX_SSE_NUM 8
#define HI_VENC_TEXTURE_THRESHOLD_SIZE 16

#define HI_ERR_VENC_INVALID_CHN_ID 0xA0088002
#define HI_ERR_VENC_ILLEGAL_PARAM 0xA0088003
#define HI_ERR_VENC_EXIST 0xA0088004
#define HI_ERR_VENC_UNEXIST 0xA0088005
#define HI_ERR_VENC_NULL_PTR 0xA0088006
#define HI_ERR_VENC_NOT_CFG 0xA0088007
#define HI_ERR_VENC_NOT_SUPPORT 0xA0088008
#define HI_ERR_VENC_NOT_PERM 0xA0088009
#define HI_ERR_VENC_NO_MEM 0xA008800C
#define HI_ERR_VENC_NO_BUF 0xA008800D
#define HI_ERR_VENC_BUF_EMPTY 0xA008800E
#define HI_ERR_VENC_BUF_FULL 0xA008800F
#define HI_ERR_VENC_SYS_NOT_READY 0xA0088010
#define HI_ERR_VENC_BAD_ADDR 0xA0088011
#define HI_ERR_VENC_BUSY 0xA0088012
#define HI_ERR_VENC_SYS_ERROR 0xA0088015

typedef hi_s32 hi_venc_chn;

/* ---- Streams */

typedef struct {
    hi_bool enable;
    hi_u64 sse_val;
} hi_venc_sse_info;

typedef enum {
    HI_VENC_H264_NALU_B_SLICE = 0,
    HI_VENC_H264_NALU_P_SLICE = 1,
    HI_VENC_H264_NALU_I_SLICE = 2,
    HI_VENC_H264_NALU_IDR_SLICE = 5,
    HI_VENC_H264_NALU_SEI = 6,
    HI_VENC_H264_NALU_SPS = 7,
    HI_VENC_H264_NALU_PPS = 8,
    HI_VENC_H264_NALU_BUTT,
} hi_venc_h264_nalu_type;

typedef enum {
    HI_VENC_H265_NALU_B_SLICE = 0,
    HI_VENC_H265_NALU_P_SLICE = 1,
    HI_VENC_H265_NALU_I_SLICE = 2,
    HI_VENC_H265_NALU_IDR_SLICE = 19,
    HI_VENC_H265_NALU_VPS = 32,
    HI_VENC_H265_NALU_SPS = 33,
    HI_VENC_H265_NALU_PPS = 34,
    HI_VENC_H265_NALU_SEI = 39,
    HI_VENC_H265_NALU_ENHANCE = 64,
    HI_VENC_H265_NALU_BUTT,
} hi_venc_h265_nalu_type;

typedef enum {
    HI_VENC_H264_REF_SLICE_FOR_1X = 1,
    HI_VENC_H264_REF_SLICE_FOR_2X = 2,
    HI_VENC_H264_REF_SLICE_FOR_4X = 5,
    HI_VENC_H264_REF_SLICE_FOR_BUTT,
} hi_venc_h264_ref_slice_type;

typedef enum {
    HI_VENC_JPEG_PACK_ECS = 5,
    HI_VENC_JPEG_PACK_APP = 6,
    HI_VENC_JPEG_PACK_VDO = 7,
    HI_VENC_JPEG_PACK_PIC = 8,
    HI_VENC_JPEG_PACK_DCF = 9,
    HI_VENC_JPEG_PACK_DCF_PIC = 10,
    HI_VENC_JPEG_PACK_BUTT,
} hi_venc_jpege_pack_type;

typedef enum {
    HI_VENC_PRORES_PACK_PIC = 1,
    HI_VENC_PRORES_PACK_BUTT,
} hi_venc_prores_pack_type;

typedef union {
    hi_venc_h264_nalu_type h264_type;
    hi_venc_jpege_pack_type jpeg_type;
    hi_venc_h265_nalu_type h265_type;
    hi_venc_prores_pack_type prores_type;
} hi_venc_data_type;

typedef struct {
    hi_venc_data_type pack_type;
    hi_u32 pack_offset;
    hi_u32 pack_len;
} hi_venc_pack_info;

typedef struct {
    __extension__ union {
        hi_u64 phys_addr;
        hi_u64 input_addr;
    };
    hi_u8 ATTRIBUTE *addr;
    hi_u32 ATTRIBUTE len;
    hi_u64 pts;
    hi_bool is_frame_end;
    hi_venc_data_type data_type;
    hi_u32 offset;
    hi_u32 data_num;
    hi_venc_pack_info pack_info[HI_VENC_MAX_PACK_INFO_NUM];
} hi_venc_pack;

typedef enum {
    HI_VENC_BASE_IDR_SLICE = 0,
    HI_VENC_BASE_P_SLICE_REF_TO_IDR,
    HI_VENC_BASE_P_SLICE_REF_BY_BASE,
    HI_VENC_BASE_P_SLICE_REF_BY_ENHANCE,
    HI_VENC_ENHANCE_P_SLICE_REF_BY_ENHANCE,
    HI_VENC_ENHANCE_P_SLICE_NOT_FOR_REF,
    HI_VENC_P_SLICE_BUTT,
} hi_venc_ref_type;

typedef struct {
    hi_u32 pic_bytes;
    hi_u32 inter16x16_mb_num;
    hi_u32 inter8x8_mb_num;
    hi_u32 intra16_mb_num;
    hi_u32 intra8_mb_num;
    hi_u32 intra4_mb_num;
    hi_venc_ref_type ref_type;
    hi_u32 update_attr_cnt;
    hi_u32 start_qp;
    hi_u32 mean_qp;
    hi_bool is_p_skip;
} hi_venc_h264_stream_info;

typedef struct {
    hi_u32 pic_bytes;
    hi_u32 inter64x64_cu_num;
    hi_u32 inter32x32_cu_num;
    hi_u32 inter16x16_cu_num;
    hi_u32 inter8x8_cu_num;
    hi_u32 intra32x32_cu_num;
    hi_u32 intra16x16_cu_num;
    hi_u32 intra8x8_cu_num;
    hi_u32 intra4x4_cu_num;
    hi_venc_ref_type ref_type;
    hi_u32 update_attr_cnt;
    hi_u32 start_qp;
    hi_u32 mean_qp;
    hi_bool is_p_skip;
} hi_venc_h265_stream_info;

typedef struct {
    hi_u32 pic_bytes;
    hi_u32 update_attr_cnt;
    hi_u32 qfactor;
} hi_venc_jpeg_stream_info;

typedef struct {
    hi_u32 pic_bytes;
    hi_u32 update_attr_cnt;
} hi_venc_prores_stream_info;

typedef struct {
    hi_u32 residual_bits;
    hi_u32 head_bits;
    hi_u32 madi_val;
    hi_u32 madp_val;
    hi_double psnr_val;
    hi_u32 sse_lcu_cnt;
    hi_u64 sse_sum;
    hi_venc_sse_info sse_info[HI_VENC_MAX_SSE_NUM];
    hi_u32 qp_hist[HI_VENC_QP_HIST_NUM];
    hi_u32 move_scene16x16_num;
    hi_u32 move_scene_bits;
} hi_venc_h264_adv_stream_info;

typedef struct {
    hi_u32 residual_bits;
    hi_u32 head_bits;
    hi_u32 madi_val;
    hi_u32 madp_val;
    hi_double psnr_val;
    hi_u32 sse_lcu_cnt;
    hi_u64 sse_sum;
    hi_venc_sse_info sse_info[HI_VENC_MAX_SSE_NUM];
    hi_u32 qp_hist[HI_VENC_QP_HIST_NUM];
    hi_u32 move_scene32x32_num;
    hi_u32 move_scene_bits;
} hi_venc_h265_adv_stream_info;

typedef struct {
    hi_venc_pack ATTRIBUTE *pack;
    hi_u32 ATTRIBUTE pack_cnt;
    hi_u32 seq;
    __extension__ union {
        hi_venc_h264_stream_info h264_info;
        hi_venc_jpeg_stream_info jpeg_info;
        hi_venc_h265_stream_info h265_info;
        hi_venc_prores_stream_info prores_info;
    };
    __extension__ union {
        hi_venc_h264_adv_stream_info h264_adv_info;
        hi_venc_h265_adv_stream_info h265_adv_info;
    };
} hi_venc_stream;

typedef struct {
    hi_venc_ref_type ref_type;
    hi_u32 pic_bytes;
    hi_u32 pic_cnt;
    hi_u32 start_qp;
    hi_u32 mean_qp;
    hi_bool is_p_skip;
    hi_u32 residual_bits;
    hi_u32 head_bits;
    hi_u32 madi_val;
    hi_u32 madp_val;
    hi_u64 sse_sum;
    hi_u32 sse_lcu_cnt;
    hi_double psnr_val;
} hi_venc_stream_info;

typedef struct {
    hi_u32 left_pics;
    hi_u32 left_stream_bytes;
    hi_u32 left_stream_frames;
    hi_u32 cur_packs;
    hi_u32 left_recv_pics;
    hi_u32 left_enc_pics;
    hi_bool is_jpeg_snap_end;
    hi_u64 release_pic_pts;
    hi_venc_stream_info stream_info;
} hi_venc_chn_status;

/* ---- Attributes of channels */

typedef struct {
    hi_bool rcn_ref_share_buf_en;
    hi_u32 frame_buf_ratio;
} hi_venc_h264_attr;

typedef struct {
    hi_bool rcn_ref_share_buf_en;
    hi_u32 frame_buf_ratio;
} hi_venc_h265_attr;

typedef struct {
    hi_u8 large_thumbnail_num;
    hi_video_size large_thumbnail_size[HI_VENC_MAX_MPF_NUM];
} hi_venc_mpf_cfg;

typedef enum {
    HI_VENC_PIC_RECV_SINGLE = 0,
    HI_VENC_PIC_RECV_MULTI,
    HI_VENC_PIC_RECV_BUTT,
} hi_venc_pic_recv_mode;

typedef struct {
    hi_bool dcf_en;
    hi_venc_mpf_cfg mpf_cfg;
    hi_venc_pic_recv_mode recv_mode;
} hi_venc_jpeg_attr;

typedef enum {
    HI_VENC_PRORES_FRAME_RATE_UNKNOWN = 0,
    HI_VENC_PRORES_FRAME_RATE_23_976,
    HI_VENC_PRORES_FRAME_RATE_24,
    HI_VENC_PRORES_FRAME_RATE_25,
    HI_VENC_PRORES_FRAME_RATE_29_97,
    HI_VENC_PRORES_FRAME_RATE_30,
    HI_VENC_PRORES_FRAME_RATE_50,
    HI_VENC_PRORES_FRAME_RATE_59_94,
    HI_VENC_PRORES_FRAME_RATE_60,
    HI_VENC_PRORES_FRAME_RATE_100,
    HI_VENC_PRORES_FRAME_RATE_119_88,
    HI_VENC_PRORES_FRAME_RATE_120,
    HI_VENC_PRORES_FRAME_RATE_BUTT,
} hi_venc_prores_frame_rate;

typedef enum {
    HI_VENC_PRORES_ASPECT_RATIO_UNKNOWN = 0,
    HI_VENC_PRORES_ASPECT_RATIO_SQUARE,
    HI_VENC_PRORES_ASPECT_RATIO_4_3,
    HI_VENC_PRORES_ASPECT_RATIO_16_9,
    HI_VENC_PRORES_ASPECT_RATIO_BUTT,
} hi_venc_prores_aspect_ratio;

typedef struct {
    hi_char identifier[HI_VENC_PRORES_MAX_ID_CHAR_NUM];
    hi_venc_prores_frame_rate frame_rate_code;
    hi_venc_prores_aspect_ratio aspect_ratio;
} hi_venc_prores_attr;

typedef struct {
    hi_payload_type type;
    hi_u32 max_pic_width;
    hi_u32 max_pic_height;
    hi_u32 buf_size;
    hi_u32 profile;
    hi_bool is_by_frame;
    hi_u32 pic_width;
    hi_u32 pic_height;
    __extension__ union {
        hi_venc_h264_attr h264_attr;
        hi_venc_h265_attr h265_attr;
        hi_venc_jpeg_attr jpeg_attr;
        hi_venc_prores_attr prores_attr;
    };
} hi_venc_attr;

typedef enum {
    HI_VENC_RC_MODE_H264_CBR = 1,
    HI_VENC_RC_MODE_H264_VBR,
    HI_VENC_RC_MODE_H264_AVBR,
    HI_VENC_RC_MODE_H264_QVBR,
    HI_VENC_RC_MODE_H264_CVBR,
    HI_VENC_RC_MODE_H264_FIXQP,
    HI_VENC_RC_MODE_H264_QPMAP,
    HI_VENC_RC_MODE_MJPEG_CBR,
    HI_VENC_RC_MODE_MJPEG_VBR,
    HI_VENC_RC_MODE_MJPEG_FIXQP,
    HI_VENC_RC_MODE_H265_CBR,
    HI_VENC_RC_MODE_H265_VBR,
    HI_VENC_RC_MODE_H265_AVBR,
    HI_VENC_RC_MODE_H265_QVBR,
    HI_VENC_RC_MODE_H265_CVBR,
    HI_VENC_RC_MODE_H265_FIXQP,
    HI_VENC_RC_MODE_H265_QPMAP,
    HI_VENC_RC_MODE_BUTT,
} hi_venc_rc_mode;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 bit_rate;
} hi_venc_h264_cbr;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 max_bit_rate;
} hi_venc_h264_vbr;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 max_bit_rate;
    hi_u32 short_term_stats_time;
    hi_u32 long_term_stats_time;
    hi_u32 long_term_max_bit_rate;
    hi_u32 long_term_min_bit_rate;
} hi_venc_h264_cvbr;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 max_bit_rate;
} hi_venc_h264_avbr;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
} hi_venc_h264_qpmap;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 target_bit_rate;
} hi_venc_h264_qvbr;

typedef enum {
    HI_VENC_RC_QPMAP_MODE_MEAN_QP = 0,
    HI_VENC_RC_QPMAP_MODE_MIN_QP,
    HI_VENC_RC_QPMAP_MODE_MAX_QP,
    HI_VENC_RC_QPMAP_MODE_BUTT,
} hi_venc_rc_qpmap_mode;

typedef struct {
    hi_u32 gop;
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_venc_rc_qpmap_mode qpmap_mode;
} hi_venc_h265_qpmap;

typedef struct {
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 qfactor;
} hi_venc_mjpeg_fixqp;

typedef struct {
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 bit_rate;
} hi_venc_mjpeg_cbr;

typedef struct {
    hi_u32 stats_time;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 max_bit_rate;
} hi_venc_mjpeg_vbr;

typedef struct {
    hi_u32 gop;
    hi_u32 src_frame_rate;
    hi_u32 dst_frame_rate;
    hi_u32 i_qp;
    hi_u32 p_qp;
    hi_u32 b_qp;
} hi_venc_h264_fixqp;

typedef hi_venc_h264_cbr hi_venc_h265_cbr;
typedef hi_venc_h264_vbr hi_venc_h265_vbr;
typedef hi_venc_h264_avbr hi_venc_h265_avbr;
typedef hi_venc_h264_fixqp hi_venc_h265_fixqp;
typedef hi_venc_h264_qvbr hi_venc_h265_qvbr;
typedef hi_venc_h264_cvbr hi_venc_h265_cvbr;

typedef struct {
    hi_venc_rc_mode rc_mode;
    __extension__ union {
        hi_venc_h264_cbr h264_cbr;
        hi_venc_h264_vbr h264_vbr;
        hi_venc_h264_avbr h264_avbr;
        hi_venc_h264_qvbr h264_qvbr;
        hi_venc_h264_cvbr h264_cvbr;
        hi_venc_h264_fixqp h264_fixqp;
        hi_venc_h264_qpmap h264_qpmap;
        hi_venc_mjpeg_cbr mjpeg_cbr;
        hi_venc_mjpeg_vbr mjpeg_vbr;
        hi_venc_mjpeg_fixqp mjpeg_fixqp;
        hi_venc_h265_cbr h265_cbr;
        hi_venc_h265_vbr h265_vbr;
        hi_venc_h265_avbr h265_avbr;
        hi_venc_h265_qvbr h265_qvbr;
        hi_venc_h265_cvbr h265_cvbr;
        hi_venc_h265_fixqp h265_fixqp;
        hi_venc_h265_qpmap h265_qpmap;
    };
} hi_venc_rc_attr;

typedef enum {
    HI_VENC_GOP_MODE_NORMAL_P = 0,
    HI_VENC_GOP_MODE_DUAL_P = 1,
    HI_VENC_GOP_MODE_SMART_P = 2,
    HI_VENC_GOP_MODE_ADV_SMART_P = 3,
    HI_VENC_GOP_MODE_BIPRED_B = 4,
    HI_VENC_GOP_MODE_LOW_DELAY_B = 5,
    HI_VENC_GOP_MODE_BUTT,
} hi_venc_gop_mode;

typedef struct {
    hi_s32 ip_qp_delta;
} hi_venc_gop_normal_p;

typedef struct {
    hi_u32 sp_interval;
    hi_s32 sp_qp_delta;
    hi_s32 ip_qp_delta;
} hi_venc_gop_dual_p;

typedef struct {
    hi_u32 bg_interval;
    hi_s32 bg_qp_delta;
    hi_s32 vi_qp_delta;
} hi_venc_gop_smart_p;

typedef struct {
    hi_u32 bg_interval;
    hi_s32 bg_qp_delta;
    hi_s32 vi_qp_delta;
} hi_venc_gop_adv_smart_p;

typedef struct {
    hi_u32 b_frame_num;
    hi_s32 b_qp_delta;
    hi_s32 ip_qp_delta;
} hi_venc_gop_bipred_b;

typedef struct {
    hi_venc_gop_mode gop_mode;
    __extension__ union {
        hi_venc_gop_normal_p normal_p;
        hi_venc_gop_dual_p dual_p;
        hi_venc_gop_smart_p smart_p;
        hi_venc_gop_adv_smart_p adv_smart_p;
        hi_venc_gop_bipred_b bipred_b;
    };
} hi_venc_gop_attr;

typedef struct {
    hi_venc_attr venc_attr;
    hi_venc_rc_attr rc_attr;
    hi_venc_gop_attr gop_attr;
} hi_venc_chn_attr;

typedef struct {
    hi_s32 recv_pic_num;
} hi_venc_start_param;

/* ---- Parameters of modules and channels */

typedef enum {
    HI_VENC_MOD_VENC = 1,
    HI_VENC_MOD_H264,
    HI_VENC_MOD_H265,
    HI_VENC_MOD_JPEG,
    HI_VENC_MOD_RC,
    HI_VENC_MOD_BUTT,
} hi_venc_mod_type;

typedef struct {
    hi_u32 one_stream_buf;
    hi_u32 mini_buf_mode;
    hi_u32 low_power_mode;
    hi_vb_src vb_src;
    hi_bool qp_hist_en;
    hi_u32 max_user_data_len;
} hi_venc_h264_mod_param;

typedef struct {
    hi_u32 one_stream_buf;
    hi_u32 mini_buf_mode;
    hi_u32 low_power_mode;
    hi_vb_src vb_src;
    hi_bool qp_hist_en;
    hi_u32 max_user_data_len;
} hi_venc_h265_mod_param;

typedef struct {
    hi_u32 one_stream_buf;
    hi_u32 mini_buf_mode;
    hi_u32 clear_stream_buf;
    hi_u32 dering_mode;
} hi_venc_jpeg_mod_param;

typedef struct {
    hi_u32 buf_cache;
    hi_u32 frame_buf_recycle;
} hi_venc_venc_mod_param;

typedef struct {
    hi_venc_mod_type mod_type;
    __extension__ union {
        hi_venc_venc_mod_param venc_mod_param;
        hi_venc_h264_mod_param h264_mod_param;
        hi_venc_h265_mod_param h265_mod_param;
        hi_venc_jpeg_mod_param jpeg_mod_param;
    };
} hi_venc_mod_param;

typedef struct {
    hi_u32 qfactor;
    hi_u8 y_qt[HI_VENC_JPEG_QT_COEF_NUM];
    hi_u8 cb_qt[HI_VENC_JPEG_QT_COEF_NUM];
    hi_u8 cr_qt[HI_VENC_JPEG_QT_COEF_NUM];
    hi_u32 mcu_per_ecs;
    hi_bool ecs_output_en;
} hi_venc_jpeg_param;

typedef struct {
    hi_u8 dc_bits[16];
    hi_u8 dc_value[12];
} hi_venc_huffman_dc_table;

typedef struct {
    hi_u8 ac_bits[16];
    hi_u8 ac_value[162];
} hi_venc_huffman_ac_table;

typedef struct {
    hi_venc_huffman_dc_table dc_tables[3];
    hi_venc_huffman_ac_table ac_tables[3];
    hi_u32 reserved[2];
} hi_venc_jpeg_huffman_param;

typedef struct {
    hi_bool enable;
    hi_rect rect;
} hi_crop_info;

typedef struct {
    hi_s32 src_frame_rate;
    hi_s32 dst_frame_rate;
} hi_frame_rate_ctrl;

typedef struct {
    hi_bool color_to_grey_en;
    hi_u32 priority;
    hi_u32 max_stream_cnt;
    hi_u32 poll_wake_up_frame_cnt;
    hi_crop_info crop_info;
    hi_frame_rate_ctrl frame_rate;
} hi_venc_chn_param;

typedef enum {
    HI_VENC_SCENE_0 = 0,
    HI_VENC_SCENE_1 = 1,
    HI_VENC_SCENE_2 = 2,
    HI_VENC_SCENE_BUTT,
} hi_venc_scene_mode;

/* ---- Parameters of the rate */

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
} hi_venc_h264_cbr_param;

typedef struct {
    hi_s32 chg_pos;
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
} hi_venc_h264_vbr_param;

typedef struct {
    hi_s32 chg_pos;
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_s32 min_still_percent;
    hi_u32 max_still_qp;
    hi_u32 min_still_psnr;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_u32 min_qp_delta;
    hi_u32 motion_sensitivity;
    hi_bool save_bitrate_en;
} hi_venc_h264_avbr_param;

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_s32 max_bit_percent;
    hi_s32 min_bit_percent;
    hi_s32 max_psnr_fluctuate;
    hi_s32 min_psnr_fluctuate;
} hi_venc_h264_qvbr_param;

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_u32 min_qp_delta;
    hi_u32 max_qp_delta;
    hi_u32 extra_bit_percent;
    hi_u32 long_term_stats_time_unit;
    hi_bool save_bitrate_en;
} hi_venc_h264_cvbr_param;

typedef struct {
    hi_u32 max_qfactor;
    hi_u32 min_qfactor;
} hi_venc_mjpeg_cbr_param;

typedef struct {
    hi_s32 chg_pos;
    hi_u32 max_qfactor;
    hi_u32 min_qfactor;
} hi_venc_mjpeg_vbr_param;

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_venc_rc_qpmap_mode qpmap_mode;
} hi_venc_h265_cbr_param;

typedef struct {
    hi_s32 chg_pos;
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_bool qpmap_en;
    hi_venc_rc_qpmap_mode qpmap_mode;
} hi_venc_h265_vbr_param;

typedef struct {
    hi_s32 chg_pos;
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_s32 min_still_percent;
    hi_u32 max_still_qp;
    hi_u32 min_still_psnr;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_u32 min_qp_delta;
    hi_u32 motion_sensitivity;
    hi_bool qpmap_en;
    hi_venc_rc_qpmap_mode qpmap_mode;
} hi_venc_h265_avbr_param;

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_venc_rc_qpmap_mode qpmap_mode;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_s32 max_bit_percent;
    hi_s32 min_bit_percent;
    hi_s32 max_psnr_fluctuate;
    hi_s32 min_psnr_fluctuate;
} hi_venc_h265_qvbr_param;

typedef struct {
    hi_u32 max_i_proportion;
    hi_u32 min_i_proportion;
    hi_s32 max_reencode_times;
    hi_bool qpmap_en;
    hi_venc_rc_qpmap_mode qpmap_mode;
    hi_u32 max_qp;
    hi_u32 min_qp;
    hi_u32 max_i_qp;
    hi_u32 min_i_qp;
    hi_u32 min_qp_delta;
    hi_u32 max_qp_delta;
    hi_u32 extra_bit_percent;
    hi_u32 long_term_stats_time_unit;
} hi_venc_h265_cvbr_param;

typedef struct {
    hi_bool detect_scene_chg_en;
    hi_bool adapt_insert_idr_frame_en;
} hi_venc_scene_chg_detect;

typedef struct {
    hi_u32 threshold_i[HI_VENC_TEXTURE_THRESHOLD_SIZE];
    hi_u32 threshold_p[HI_VENC_TEXTURE_THRESHOLD_SIZE];
    hi_u32 threshold_b[HI_VENC_TEXTURE_THRESHOLD_SIZE];
    hi_u32 direction;
    hi_u32 row_qp_delta;
    hi_s32 first_frame_start_qp;
    hi_venc_scene_chg_detect scene_chg_detect;
    __extension__ union {
        hi_venc_h264_cbr_param h264_cbr_param;
        hi_venc_h264_vbr_param h264_vbr_param;
        hi_venc_h264_avbr_param h264_avbr_param;
        hi_venc_h264_qvbr_param h264_qvbr_param;
        hi_venc_h264_cvbr_param h264_cvbr_param;
        hi_venc_h265_cbr_param h265_cbr_param;
        hi_venc_h265_vbr_param h265_vbr_param;
        hi_venc_h265_avbr_param h265_avbr_param;
        hi_venc_h265_qvbr_param h265_qvbr_param;
        hi_venc_h265_cvbr_param h265_cvbr_param;
        hi_venc_mjpeg_cbr_param mjpeg_cbr_param;
        hi_venc_mjpeg_vbr_param mjpeg_vbr_param;
    };
} hi_venc_rc_param;

/* ---- Functions */

ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_create_chn(hi_venc_chn chn, const hi_venc_chn_attr *attr);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_destroy_chn(hi_venc_chn chn);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_start_chn(hi_venc_chn chn,
        const hi_venc_start_param *recv_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_stop_chn(hi_venc_chn chn);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_query_status(hi_venc_chn chn, hi_venc_chn_status *status);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_stream(hi_venc_chn chn, hi_venc_stream *stream,
        hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_release_stream(hi_venc_chn chn, hi_venc_stream *stream);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_send_frame(hi_venc_chn chn, const hi_video_frame_info *frame,
        hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_send_jpege_frame(hi_venc_chn chn,
        const hi_video_frame_info *frame, const hi_img_stream *jpege_stream, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_jpege_predicted_size(const hi_video_frame_info *frame,
        const hi_venc_jpeg_param *jpeg_param, hi_u32 *size);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_fd(hi_venc_chn chn);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_close_fd(hi_venc_chn chn);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_chn_param(hi_venc_chn chn,
        const hi_venc_chn_param *chn_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_mod_param(const hi_venc_mod_param *mod_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_mod_param(hi_venc_mod_param *mod_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_jpeg_param(hi_venc_chn chn,
        const hi_venc_jpeg_param *jpeg_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_jpeg_param(hi_venc_chn chn,
        hi_venc_jpeg_param *jpeg_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_jpeg_huffman_param(hi_venc_chn chn,
        const hi_venc_jpeg_huffman_param *jpeg_huffman_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_jpeg_huffman_param(hi_venc_chn chn,
        hi_venc_jpeg_huffman_param *jpeg_huffman_data);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_compact_jpeg_tables(hi_venc_chn chn, hi_u32 table_type,
        hi_bool enable);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_request_idr(hi_venc_chn chn, hi_bool instant);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_scene_mode(hi_venc_chn chn,
        const hi_venc_scene_mode scene_mode);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_set_rc_param(hi_venc_chn chn,
        const hi_venc_rc_param *rc_param);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_venc_get_rc_param(hi_venc_chn chn, hi_venc_rc_param *rc_param);

#ifdef __cplusplus
}
#endif

#endif /* OPSCOPE_ACL_DVPP_HI_MPI_VENC_H */
