/* Calls functions of streams, host functions, memory, media, AIPP, products and overflows in a random order, with handles
 * that are valid, of another kind, destroyed or invented. None may crash or hang, and every code has to be known. */
#include <string.h>

#include "acl/ops/acl_cblas.h"
#include "acl/ops/acl_dvpp.h"
#include "check.h"

#define N_HANDLES 24

static uint64_t state;
static void *handles[N_HANDLES];
static volatile int n_host;

static uint32_t drawn(uint32_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 33) % n;
}

static void *any(void)
{
    switch (drawn(16)) {
    case 0:
        return NULL;
    case 1:
        return (void *)(uintptr_t)0x1234567;
    default:
        return handles[drawn(N_HANDLES)];
    }
}

static void keep(void *handle)
{
    if (handle != NULL) {
        handles[drawn(N_HANDLES)] = handle;
    }
}

static void count(void *arguments)
{
    (void)arguments;
    n_host++;
}

static void check(aclError code, int line)
{
    const aclError known[] = {ACL_SUCCESS,
                              ACL_ERROR_INVALID_PARAM,
                              ACL_ERROR_API_NOT_SUPPORT,
                              ACL_ERROR_STREAM_NOT_SUBSCRIBE,
                              (aclError)ACL_ERROR_RT_PARAM_INVALID,
                              (aclError)ACL_ERROR_RT_INVALID_HANDLE,
                              (aclError)ACL_ERROR_RT_STREAM_CONTEXT,
                              (aclError)ACL_ERROR_RT_CONTEXT_NULL,
                              (aclError)ACL_ERROR_GE_PARAM_INVALID,
                              (aclError)ACL_ERROR_GE_EXEC_MODEL_ID_INVALID};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (code == known[i]) {
            return;
        }
    }
    fprintf(stderr, "random_calls.c:%d: the code %d\n", line, code);
    exit(1);
}

#define GIVES_A_CODE(call) check((call), __LINE__)

static void streams(void)
{
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    uint32_t number = 0;
    uint8_t status[64];
    switch (drawn(10)) {
    case 0:
        GIVES_A_CODE(aclrtCreateStreamWithConfig(&stream, drawn(8), drawn(64)));
        keep(stream);
        break;
    case 1:
        GIVES_A_CODE(aclrtCreateEvent(&event));
        keep(event);
        break;
    case 2:
        GIVES_A_CODE(aclrtLaunchHostFunc(any(), count, any()));
        break;
    case 3:
        GIVES_A_CODE(aclrtDestroyStream(any()));
        break;
    case 4:
        GIVES_A_CODE(aclrtRecordEventWithFlag(any(), any(), drawn(3)));
        break;
    case 5:
        GIVES_A_CODE(aclrtSynchronizeStream(any()));
        break;
    case 6:
        GIVES_A_CODE(aclrtGetOverflowStatus(drawn(4) == 0 ? NULL : status, drawn(80), any()));
        break;
    case 7:
        GIVES_A_CODE(aclrtSetStreamOverflowSwitch(any(), drawn(3)));
        break;
    case 8:
        GIVES_A_CODE(aclrtStreamGetPriority(any(), &number));
        break;
    default:
        GIVES_A_CODE(aclrtDestroyEvent(any()));
    }
}

static void media(void)
{
    void *memory = NULL;
    switch (drawn(12)) {
    case 0:
        keep(acldvppCreatePicDesc());
        break;
    case 1:
        keep(acldvppCreateBatchPicDesc(drawn(300)));
        break;
    case 2:
        keep(acldvppGetPicDesc(any(), drawn(4)));
        break;
    case 3:
        keep(aclvdecCreateChannelDesc());
        break;
    case 4:
        GIVES_A_CODE(acldvppSetPicDescWidth(any(), drawn(1000)));
        (void)acldvppGetPicDescWidth(any());
        break;
    case 5:
        GIVES_A_CODE(acldvppDestroyPicDesc(any()));
        break;
    case 6:
        GIVES_A_CODE(acldvppDestroyBatchPicDesc(any()));
        break;
    case 7:
        GIVES_A_CODE(aclvdecCreateChannel(any()));
        break;
    case 8:
        GIVES_A_CODE(aclvdecDestroyChannelDesc(any()));
        break;
    case 9:
        GIVES_A_CODE(acldvppVpcResizeAsync(any(), any(), any(), any(), any()));
        break;
    case 10:
        GIVES_A_CODE(acldvppMalloc(&memory, drawn(100)));
        keep(memory);
        break;
    default:
        GIVES_A_CODE(acldvppFree(any()));
    }
}

static void aipp(void)
{
    aclmdlInputAippType type;
    size_t n = 0;
    switch (drawn(9)) {
    case 0:
        keep(aclmdlCreateAIPP(drawn(4)));
        break;
    case 1:
        GIVES_A_CODE(aclmdlDestroyAIPP(any()));
        break;
    case 2:
        GIVES_A_CODE(aclmdlSetAIPPInputFormat(any(), (aclAippInputFormat)drawn(20)));
        break;
    case 3:
        GIVES_A_CODE(aclmdlSetAIPPSrcImageSize(any(), (int32_t)drawn(5000), (int32_t)drawn(5000)));
        break;
    case 4:
        GIVES_A_CODE(aclmdlSetAIPPCropParams(any(), (int8_t)drawn(3), (int32_t)drawn(5000), -1, 1, 1, drawn(4)));
        break;
    case 5:
        GIVES_A_CODE(aclmdlSetAIPPPixelVarReci(any(), 1e9F, 0.0F, -1.0F, 1.0F, drawn(4)));
        break;
    case 6:
        GIVES_A_CODE(aclmdlSetInputAIPP(drawn(3), any(), drawn(3), any()));
        break;
    case 7:
        GIVES_A_CODE(aclmdlGetAippDataSize(drawn(2), &n));
        break;
    default:
        GIVES_A_CODE(aclmdlGetAippType(drawn(3), drawn(3), &type, &n));
    }
}

static void products(void)
{
    float one = 1.0F;
    float sum = 0.0F;
    aclopHandle *handle = NULL;
    switch (drawn(4)) {
    case 0:
        if (drawn(20) == 0) {
            GIVES_A_CODE(aclblasCreateHandleForGemmEx((aclTransType)drawn(2), ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1,
                                                      ACL_FLOAT, ACL_FLOAT, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION,
                                                      &handle));
            keep(handle);
        }
        break;
    case 1: {
        aclDataBuffer *buffers[5];
        for (int i = 0; i < 5; i++) {
            buffers[i] = aclCreateDataBuffer(i == 2 ? &sum : &one, sizeof one);
        }
        GIVES_A_CODE(aclopExecWithHandle(any(), (int)drawn(6), (const aclDataBuffer *const *)buffers, 1, &buffers[2],
                                         any()));
        for (int i = 0; i < 5; i++) {
            MUST(aclDestroyDataBuffer(buffers[i]));
        }
        break;
    }
    case 2:
        aclopDestroyHandle(any());
        break;
    default:
        GIVES_A_CODE(aclblasHgemv((aclTransType)drawn(5), (int)drawn(2), 1, NULL, NULL, -1, NULL, -1, NULL, NULL, -1,
                                  ACL_COMPUTE_HIGH_PRECISION, any()));
    }
}

int main(int argc, char **argv)
{
    int n_calls = argc > 2 ? atoi(argv[2]) : 1000;
    state = argc > 1 ? (uint64_t)atoi(argv[1]) : 0;
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    for (int i = 0; i < n_calls; i++) {
        switch (drawn(6)) {
        case 0:
            products();
            break;
        case 5:
            aipp();
            break;
        case 1:
        case 2:
            media();
            break;
        default:
            streams();
        }
        if (drawn(8) == 0) {
            /* Reading a report removes it, so unread reports pile up in between. */
            (void)aclGetRecentErrMsg();
        }
    }
    MUST(aclrtSynchronizeDevice());
    TRUE_OR_EXIT(n_host > 0);
    /* The process cleans up the remaining objects. */
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
