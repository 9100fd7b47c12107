/* Describes pictures, and checks the advice of functions that need hardware. Includes every header. */
#include <string.h>

#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "acl/dvpp/hi_dvpp.h"
#include "acl/ops/acl_dvpp.h"
#include "acl/ops/acl_fv.h"
#include "check.h"

static void says(const char *part)
{
    const char *text = aclGetRecentErrMsg();
    TRUE_OR_EXIT(text != NULL && strstr(text, part) != NULL);
}

static void on_frame(acldvppStreamDesc *input, acldvppPicDesc *output, void *user_data)
{
    (void)input;
    (void)output;
    (void)user_data;
}

static void pictures(void)
{
    void *memory = NULL;
    acldvppPicDesc *picture = acldvppCreatePicDesc();
    acldvppBatchPicDesc *batch = acldvppCreateBatchPicDesc(2);
    MUST(acldvppMalloc(&memory, 1024));
    MUST(acldvppSetPicDescData(picture, memory));
    MUST(acldvppSetPicDescSize(picture, 1024));
    MUST(acldvppSetPicDescFormat(picture, PIXEL_FORMAT_YUV_SEMIPLANAR_420));
    MUST(acldvppSetPicDescWidth(picture, 32));
    TRUE_OR_EXIT(acldvppGetPicDescData(picture) == memory);
    TRUE_OR_EXIT(acldvppGetPicDescSize(picture) == 1024 && acldvppGetPicDescWidth(picture) == 32);
    TRUE_OR_EXIT(acldvppGetPicDescFormat(picture) == PIXEL_FORMAT_YUV_SEMIPLANAR_420);
    TRUE_OR_EXIT(acldvppGetPicDescHeight(picture) == 0 && acldvppGetPicDescHeight(NULL) == 0);
    MUST(acldvppSetPicDescHeight(acldvppGetPicDesc(batch, 1), 8));
    TRUE_OR_EXIT(acldvppGetPicDesc(batch, 2) == NULL);
    MUST(acldvppDestroyBatchPicDesc(batch));
    MUST(acldvppDestroyPicDesc(picture));
    TRUE_OR_EXIT(acldvppDestroyPicDesc(picture) == ACL_ERROR_INVALID_PARAM);
    MUST(acldvppFree(memory));
}

static void configurations(void)
{
    acldvppRoiConfig *region = acldvppCreateRoiConfig(0, 31, 0, 15);
    acldvppBorderConfig *border = acldvppCreateBorderConfig();
    aclvdecChannelDesc *channel = aclvdecCreateChannelDesc();
    MUST(acldvppSetRoiConfig(region, 2, 29, 2, 13));
    MUST(acldvppSetBorderConfigValue(border, 3, 0.5));
    TRUE_OR_EXIT(acldvppGetBorderConfigValue(border, 3) == 0.5);
    MUST(aclvdecSetChannelDescThreadId(channel, UINT64_MAX));
    TRUE_OR_EXIT(aclvdecGetChannelDescThreadId(channel) == UINT64_MAX);
    MUST(aclvdecSetChannelDescCallback(channel, on_frame));
    TRUE_OR_EXIT(aclvdecGetChannelDescCallback(channel) == on_frame);
    TRUE_OR_EXIT(aclvdecCreateChannel(channel) == ACL_ERROR_API_NOT_SUPPORT);
    says("aclvdecCreateChannel is not supported");
    MUST(aclvdecDestroyChannelDesc(channel));
    MUST(acldvppDestroyBorderConfig(border));
    MUST(acldvppDestroyRoiConfig(region));
}

static void second_interface(void)
{
    void *memory = NULL;
    hi_vpc_pic_info from, to;
    hi_vpc_make_border_info border;
    hi_u32 task = 0;
    memset(&from, 0, sizeof(from));
    memset(&to, 0, sizeof(to));
    memset(&border, 0, sizeof(border));
    MUST(hi_mpi_sys_init());
    MUST(hi_mpi_dvpp_malloc(0, &memory, 1024));
    TRUE_OR_EXIT(memory != NULL);
    MUST(hi_mpi_dvpp_free(memory));
    /* A structure passed by value between other arguments must not disturb them. */
    TRUE_OR_EXIT(hi_mpi_vpc_copy_make_border(0, &from, &to, border, &task, -1) == ACL_ERROR_API_NOT_SUPPORT);
    says("hi_mpi_vpc_copy_make_border is not supported");
    TRUE_OR_EXIT(hi_mpi_vpc_resize(0, &from, &to, 0.5, 0.5, 0, &task, -1) == ACL_ERROR_API_NOT_SUPPORT);
    says("OpenCV");
    /* Descriptors and status codes are both positive. */
    TRUE_OR_EXIT(hi_mpi_venc_get_fd(0) == -1);
    TRUE_OR_EXIT(hi_vdec_get_tmv_buf_size(HI_PT_H264, 64, 64) == 0);
    MUST(hi_mpi_sys_exit());
}

int main(void)
{
    uint32_t size = 0;
    uint32_t queue = 0;
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    pictures();
    configurations();
    second_interface();
    TRUE_OR_EXIT(acldvppJpegPredictDecSize("", 0, PIXEL_FORMAT_RGB_888, &size) == ACL_ERROR_API_NOT_SUPPORT);
    says("OpenCV");
    TRUE_OR_EXIT(acldvppCreateHist() == NULL);
    says("acldvppCreateHist is not supported");
    TRUE_OR_EXIT(aclfvInit(NULL) == ACL_ERROR_API_NOT_SUPPORT);
    says("aclfvInit");
    TRUE_OR_EXIT(aclprofInit("/tmp", 4) == ACL_ERROR_API_NOT_SUPPORT);
    says("aclprofInit");
    TRUE_OR_EXIT(acltdtCreateDataset() == NULL);
    says("acltdtCreateDataset");
    TRUE_OR_EXIT(acltdtCreateQueue(NULL, &queue) == ACL_ERROR_API_NOT_SUPPORT);
    says("acltdtCreateQueue");
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
