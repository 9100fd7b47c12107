/* Calls with null pointers, wrong handles and double destruction. Every call returns a code. */
#include <string.h>

#include "acl/acl_op_compiler.h"
#include "acl/ops/acl_cblas.h"
#include "acl/ops/acl_dvpp.h"
#include "check.h"

static int n_wrong;

static void expect(const char *call, int line, aclError found, aclError wanted)
{
    if (found != wanted) {
        fprintf(stderr, "misuse.c:%d: %s returned %d, not %d\n", line, call, found, wanted);
        n_wrong++;
    }
}

static void expect_failure(const char *call, int line, aclError found)
{
    if (found == ACL_SUCCESS) {
        fprintf(stderr, "misuse.c:%d: %s succeeded\n", line, call);
        n_wrong++;
    }
}

#define GIVES(call, code) expect(#call, __LINE__, (call), (code))
#define FAILS(call) expect_failure(#call, __LINE__, (call))
#define HOLDS(condition) expect(#condition, __LINE__, (condition) ? 0 : 1, 0)

/* A handle of no object. */
#define STRANGE(type) ((type *)(uintptr_t)0x1234567)

static void before_init(void)
{
    uint32_t id = 0;
    GIVES(aclmdlLoadFromFile("/no/such/model.onnx", &id), (aclError)ACL_ERROR_GE_EXEC_NOT_INIT);
    HOLDS(aclGetRecentErrMsg() != NULL);
    GIVES(aclmdlUnload(1), (aclError)ACL_ERROR_GE_EXEC_NOT_INIT);
}

static void runtime(void)
{
    aclrtContext context = NULL;
    aclrtStream stream = NULL;
    aclrtEvent event = NULL;
    aclrtEvent unrecorded = NULL;
    float ms = 0.0F;
    size_t n = 0;
    int32_t device = 0;

    GIVES(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    GIVES(aclrtSetDevice(100000), ACL_ERROR_RT_INVALID_DEVICEID);
    GIVES(aclrtGetDevice(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetDeviceCount(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetRunMode(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtSetDevice(0), ACL_SUCCESS);
    GIVES(aclrtGetDevice(&device), ACL_SUCCESS);

    GIVES(aclrtCreateContext(NULL, 0), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtCreateContext(&context, 0), ACL_SUCCESS);
    GIVES(aclrtSetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
    FAILS(aclrtSetCurrentContext(STRANGE(void)));
    FAILS(aclrtDestroyContext(STRANGE(void)));
    GIVES(aclrtDestroyContext(NULL), ACL_ERROR_INVALID_PARAM);

    GIVES(aclrtCreateStream(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtCreateStream(&stream), ACL_SUCCESS);
    GIVES(aclrtSynchronizeStream(NULL), ACL_SUCCESS);
    FAILS(aclrtSynchronizeStream(STRANGE(void)));
    FAILS(aclrtSynchronizeStreamWithTimeout(stream, -2));
    FAILS(aclrtSynchronizeStream((aclrtStream)context));
    GIVES(aclrtDestroyStream(stream), ACL_SUCCESS);
    FAILS(aclrtDestroyStream(stream));
    FAILS(aclrtStreamQuery(stream, (aclrtStreamStatus *)&device));

    GIVES(aclrtCreateEvent(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtCreateEvent(&event), ACL_SUCCESS);
    GIVES(aclrtCreateEvent(&unrecorded), ACL_SUCCESS);
    FAILS(aclrtRecordEvent(event, stream));
    FAILS(aclrtRecordEvent(NULL, NULL));
    GIVES(aclrtRecordEvent(event, NULL), ACL_SUCCESS);
    FAILS(aclrtEventElapsedTime(&ms, event, unrecorded));
    GIVES(aclrtEventElapsedTime(NULL, event, event), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtDestroyEvent(unrecorded), ACL_SUCCESS);
    GIVES(aclrtDestroyEvent(event), ACL_SUCCESS);
    FAILS(aclrtDestroyEvent(event));

    GIVES(aclrtDestroyContext(context), ACL_SUCCESS);
    FAILS(aclrtDestroyContext(context));
    GIVES(aclrtSetDevice(0), ACL_SUCCESS);
    GIVES(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &n), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetMemInfo(ACL_HBM_MEM, &n, &n), ACL_SUCCESS);
    GIVES(aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, NULL), ACL_ERROR_INVALID_PARAM);
    HOLDS(aclrtGetTaskIdFromExceptionInfo(NULL) == 0xFFFFFFFFU);
    HOLDS(aclrtGetTaskIdFromExceptionInfo((const aclrtExceptionInfo *)&n) == 0xFFFFFFFFU);
}

static void memory(void)
{
    void *device = NULL;
    void *host = NULL;
    char text[16] = "fifteen letters";
    char copy[16] = "";

    GIVES(aclrtMalloc(NULL, 16, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtMalloc(&device, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    FAILS(aclrtMalloc(&device, (size_t)-1, ACL_MEM_MALLOC_HUGE_FIRST));
    GIVES(aclrtMallocHost(NULL, 16), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtMallocHost(&host, 0), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    HOLDS((uintptr_t)device % 64 == 0);
    GIVES(aclrtMemcpy(device, 16, text, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    GIVES(aclrtMemcpy(copy, 16, device, 16, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    HOLDS(strcmp(text, copy) == 0);
    GIVES(aclrtMemcpy(device, 15, text, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    GIVES(aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    FAILS(aclrtMemcpy(NULL, 16, text, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    FAILS(aclrtMemcpy(device, 16, NULL, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    FAILS(aclrtMemset(NULL, 16, 0, 16));
    FAILS(aclrtMemset(device, 15, 0, 16));
    GIVES(aclrtMemset(device, 16, 7, 16), ACL_SUCCESS);
    HOLDS(((unsigned char *)device)[15] == 7);
    GIVES(aclrtMemcpy2d(device, 8, text, 4, 4, 2, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    HOLDS(memcmp(device, "fift\7\7\7\7een \7\7\7\7", 16) == 0);
    FAILS(aclrtMemcpy2d(device, 3, text, 4, 4, 2, ACL_MEMCPY_HOST_TO_DEVICE));
    GIVES(aclrtFree(device), ACL_SUCCESS);
    FAILS(aclrtFree(device));
    FAILS(aclrtFree(text));
    GIVES(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM);
}

static void data(void)
{
    char bytes[8];
    aclDataBuffer *buffer = aclCreateDataBuffer(bytes, sizeof bytes);
    aclmdlDataset *dataset = aclmdlCreateDataset();

    HOLDS(buffer != NULL && dataset != NULL);
    HOLDS(aclGetDataBufferAddr(NULL) == NULL);
    HOLDS(aclGetDataBufferSizeV2(NULL) == 0);
    HOLDS(aclGetDataBufferSizeV2(STRANGE(aclDataBuffer)) == 0);
    HOLDS(aclGetDataBufferAddr((aclDataBuffer *)dataset) == NULL);
    HOLDS(aclGetDataBufferSize(buffer) == sizeof bytes);
    GIVES(aclDestroyDataBuffer(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclUpdateDataBuffer(NULL, bytes, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlAddDatasetBuffer(NULL, buffer), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlAddDatasetBuffer(dataset, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlAddDatasetBuffer(dataset, buffer), ACL_SUCCESS);
    HOLDS(aclmdlGetDatasetNumBuffers(NULL) == 0);
    HOLDS(aclmdlGetDatasetNumBuffers(dataset) == 1);
    HOLDS(aclmdlGetDatasetBuffer(dataset, 0) == buffer);
    HOLDS(aclmdlGetDatasetBuffer(dataset, 1) == NULL);
    HOLDS(aclmdlGetDatasetBuffer(NULL, 0) == NULL);
    GIVES(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
    FAILS(aclDestroyDataBuffer(buffer));
    FAILS(aclmdlExecute(1, dataset, dataset));
    GIVES(aclmdlDestroyDataset(dataset), ACL_SUCCESS);
    FAILS(aclmdlDestroyDataset(dataset));
    GIVES(aclmdlDestroyDataset(NULL), ACL_ERROR_INVALID_PARAM);
}

/* Absurd counts: the pointers next to them are valid for a few values only. */
static void counts(void)
{
    const size_t many = (size_t)1 << 40;
    int64_t dims[2] = {2, 3};
    int64_t ranges[2][2] = {{1, 2}, {1, 2}};
    char text[16] = "fifteen letters";
    void *address = NULL;
    uint32_t id = 0;
    size_t n = 0;
    acldumpTensorInfo info;
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    aclTensorDesc *descs[1] = {desc};
    aclDataBuffer *buffers[1] = {aclCreateDataBuffer(text, many)};
    aclopAttr *attributes = aclopCreateAttr();

    memset(&info, 0, sizeof info);
    GIVES(aclrtMalloc(&address, many, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    HOLDS(strstr(aclGetRecentErrMsg(), "bytes of memory") != NULL);
    GIVES(aclrtMallocHost(&address, many), ACL_ERROR_RT_MEMORY_ALLOCATION);
    GIVES(aclmdlLoadFromMem(text, many, &id), ACL_ERROR_INVALID_PARAM);
    HOLDS(strstr(aclGetRecentErrMsg(), "1099511627776") != NULL);
    GIVES(aclmdlQuerySizeFromMem(text, many, &n, &n), ACL_ERROR_INVALID_PARAM);
    HOLDS(aclCreateTensorDesc(ACL_FLOAT, 0x7FFFFFFF, dims, ACL_FORMAT_ND) == NULL);
    GIVES(aclSetTensorShape(desc, 0x7FFFFFFF, dims), ACL_ERROR_INVALID_PARAM);
    GIVES(aclSetTensorOriginShape(desc, 0x7FFFFFFF, dims), ACL_ERROR_INVALID_PARAM);
    GIVES(aclSetTensorShapeRange(desc, many, ranges), ACL_ERROR_INVALID_PARAM);
    GIVES(aclSetTensorValueRange(desc, many, ranges), ACL_ERROR_INVALID_PARAM);
    GIVES(aclSetTensorConst(desc, text, many), ACL_ERROR_INVALID_PARAM);
    GIVES(aclopSetAttrListInt(attributes, "a", 0x7FFFFFFF, dims), ACL_ERROR_INVALID_PARAM);
    GIVES(aclopSetAttrListFloat(attributes, "a", 0x7FFFFFFF, (const float *)dims), ACL_ERROR_INVALID_PARAM);
    FAILS(aclopExecuteV2("Add", 0x7FFFFFFF, descs, buffers, 1, descs, buffers, attributes, NULL));
    FAILS(aclopExecuteV2("Add", 1, descs, buffers, 0x7FFFFFFF, descs, buffers, attributes, NULL));
    FAILS(acldumpSaveExceptionInfo("x", NULL, &info, many));
    aclDestroyTensorDesc(desc);
    GIVES(aclDestroyDataBuffer(buffers[0]), ACL_SUCCESS);
    aclopDestroyAttr(attributes);
}

static void models(void)
{
    uint32_t id = 0;
    size_t n = 0;
    aclmdlIODims dims;
    aclmdlDesc *desc = aclmdlCreateDesc();
    aclmdlDataset *dataset = aclmdlCreateDataset();
    aclmdlExecConfigHandle *options = aclmdlCreateExecConfigHandle();
    aclmdlConfigHandle *config = aclmdlCreateConfigHandle();
    const char *path = "/no/such/model.onnx";
    size_t load_type = ACL_MDL_LOAD_FROM_FILE;

    GIVES(aclmdlLoadFromFile(NULL, &id), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlLoadFromFile(path, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlLoadFromFile(path, &id), (aclError)ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    GIVES(aclmdlLoadFromMem(NULL, 16, &id), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlLoadFromMem(path, 0, &id), ACL_ERROR_INVALID_PARAM);
    FAILS(aclmdlLoadFromMem("not a model", 11, &id));
    GIVES(aclmdlQuerySize(path, NULL, &n), ACL_ERROR_INVALID_PARAM);
    FAILS(aclmdlQuerySize(path, &n, &n));
    GIVES(aclmdlUnload(12345), (aclError)ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    GIVES(aclmdlExecute(12345, dataset, dataset), (aclError)ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    GIVES(aclmdlExecute(1, NULL, dataset), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlExecute(1, dataset, NULL), ACL_ERROR_INVALID_PARAM);

    GIVES(aclmdlGetDesc(NULL, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlGetDesc(desc, 12345), (aclError)ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    FAILS(aclmdlGetDesc(STRANGE(aclmdlDesc), 1));
    HOLDS(aclmdlGetNumInputs(NULL) == 0 && aclmdlGetNumOutputs(desc) == 0);
    HOLDS(aclmdlGetInputSizeByIndex(desc, 0) == 0);
    HOLDS(aclmdlGetInputDataType(desc, 0) == ACL_DT_UNDEFINED);
    HOLDS(aclmdlGetOutputFormat(NULL, 0) == ACL_FORMAT_UNDEFINED);
    HOLDS(strcmp(aclmdlGetInputNameByIndex(desc, 0), "") == 0);
    GIVES(aclmdlGetInputDims(desc, 0, &dims), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlGetInputDims(desc, 0, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlGetInputIndexByName(desc, "x", &n), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlGetInputIndexByName(desc, NULL, &n), ACL_ERROR_INVALID_PARAM);
    HOLDS(aclmdlGetOpAttr(desc, "x", "y") == NULL);
    HOLDS(aclmdlGetOpAttr(NULL, NULL, NULL) == NULL);
    GIVES(aclmdlDestroyDesc(desc), ACL_SUCCESS);
    FAILS(aclmdlDestroyDesc(desc));
    FAILS(aclmdlGetDesc(desc, 1));

    GIVES(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &load_type, sizeof load_type), ACL_SUCCESS);
    GIVES(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof path), ACL_SUCCESS);
    FAILS(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, 1));
    GIVES(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, NULL, sizeof path), ACL_ERROR_INVALID_PARAM);
    GIVES(aclmdlLoadWithConfig(config, &id), (aclError)ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID);
    GIVES(aclmdlDestroyConfigHandle(config), ACL_SUCCESS);
    FAILS(aclmdlDestroyConfigHandle(config));

    FAILS(aclmdlExecuteV2(1, dataset, dataset, NULL, STRANGE(aclmdlExecConfigHandle)));
    FAILS(aclmdlSetExecConfigOpt(options, ACL_MDL_STREAM_SYNC_TIMEOUT, &n, 1));
    GIVES(aclmdlSetExecConfigOpt(options, ACL_MDL_STREAM_SYNC_TIMEOUT, &n, 4), ACL_SUCCESS);
    GIVES(aclmdlDestroyExecConfigHandle(options), ACL_SUCCESS);
    FAILS(aclmdlDestroyExecConfigHandle(options));
    GIVES(aclmdlDestroyDataset(dataset), ACL_SUCCESS);

    HOLDS(aclmdlCreateAIPP(0) == NULL);
    FAILS(aclmdlDestroyAIPP(NULL));
    FAILS(aclmdlSetAIPPRbuvSwapSwitch(STRANGE(aclmdlAIPP), 1));
    GIVES(aclmdlSetInputAIPP(1, NULL, 0, NULL), (aclError)ACL_ERROR_GE_EXEC_MODEL_ID_INVALID);
    FAILS(aclmdlGetAippType(1, 0, NULL, NULL));
    FAILS(aclmdlGetFirstAippInfo(1, 0, NULL));
    GIVES(aclmdlLoadFromFileWithQ(path, &id, NULL, 0, NULL, 0), ACL_ERROR_API_NOT_SUPPORT);
}

static void tensors_and_operators(void)
{
    int64_t dims[2] = {2, 3};
    int64_t dim = 0;
    char small[2];
    aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT16, 2, dims, ACL_FORMAT_ND);
    aclopAttr *attributes = aclopCreateAttr();
    const char *words[2] = {"a", NULL};
    aclTensorDesc *none[1] = {NULL};
    aclDataBuffer *no_buffer[1] = {NULL};

    HOLDS(aclCreateTensorDesc(ACL_FLOAT, -1, dims, ACL_FORMAT_ND) == NULL);
    HOLDS(aclCreateTensorDesc(ACL_FLOAT, 2, NULL, ACL_FORMAT_ND) == NULL);
    HOLDS(aclGetTensorDescSize(desc) == 12 && aclGetTensorDescElementCount(desc) == 6);
    HOLDS(aclGetTensorDescType(NULL) == ACL_DT_UNDEFINED);
    HOLDS(aclGetTensorDescNumDims(STRANGE(aclTensorDesc)) == 0);
    GIVES(aclGetTensorDescDimV2(desc, 1, &dim), ACL_SUCCESS);
    HOLDS(dim == 3);
    FAILS(aclGetTensorDescDimV2(desc, 2, &dim));
    GIVES(aclGetTensorDescDimV2(desc, 0, NULL), ACL_ERROR_INVALID_PARAM);
    aclSetTensorDescName(desc, "weights");
    HOLDS(strcmp(aclGetTensorDescName(desc), "weights") == 0);
    HOLDS(strcmp(aclGetTensorDescName(NULL), "") == 0);
    FAILS(aclSetTensorShape(NULL, 2, dims));
    FAILS(aclSetTensorShape(desc, 2, NULL));
    FAILS(aclSetTensorConst(desc, NULL, 4));
    aclDestroyTensorDesc(desc);
    aclDestroyTensorDesc(desc);
    aclDestroyTensorDesc(NULL);
    FAILS(aclSetTensorFormat(desc, ACL_FORMAT_NCHW));

    GIVES(aclopSetAttrInt(NULL, "axis", 1), ACL_ERROR_INVALID_PARAM);
    GIVES(aclopSetAttrInt(attributes, NULL, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(aclopSetAttrBool(attributes, "flag", 2), ACL_ERROR_INVALID_PARAM);
    FAILS(aclopSetAttrInt(STRANGE(aclopAttr), "axis", 1));
    FAILS(aclopSetAttrListInt(attributes, "axes", 2, NULL));
    FAILS(aclopSetAttrListInt(attributes, "axes", -1, dims));
    FAILS(aclopSetAttrListString(attributes, "words", 2, words));
    GIVES(aclopSetAttrListInt(attributes, "axes", 2, dims), ACL_SUCCESS);
    FAILS(aclopExecuteV2(NULL, 0, NULL, NULL, 0, NULL, NULL, attributes, NULL));
    FAILS(aclopExecuteV2("Add", 1, none, no_buffer, 1, none, no_buffer, attributes, NULL));
    FAILS(aclopExecuteV2("Add", -1, none, no_buffer, 1, none, no_buffer, attributes, NULL));
    aclopDestroyAttr(attributes);
    aclopDestroyAttr(attributes);
    aclopDestroyAttr(NULL);
    aclopDestroyHandle(NULL);

    FAILS(aclSetCompileopt(ACL_PRECISION_MODE, NULL));
    HOLDS(aclGetCompileoptSize(ACL_OP_DEBUG_LEVEL) == 0);
    GIVES(aclSetCompileopt(ACL_OP_DEBUG_LEVEL, "1"), ACL_SUCCESS);
    HOLDS(aclGetCompileoptSize(ACL_OP_DEBUG_LEVEL) == 2);
    FAILS(aclGetCompileopt(ACL_OP_DEBUG_LEVEL, small, 1));
    GIVES(aclGetCompileopt(ACL_OP_DEBUG_LEVEL, small, 2), ACL_SUCCESS);
    HOLDS(strcmp(small, "1") == 0);
}

static void dumps(void)
{
    char path[8];
    acldumpTensorInfo tensor;
    memset(&tensor, 0, sizeof tensor);

    HOLDS(acldumpGetPath((acldumpType)99) == NULL);
    GIVES(acldumpGetExceptionInfoPath(NULL, 8), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpGetExceptionInfoPath(path, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpGetExceptionInfoPath(path, 8), ACL_ERROR_FAILURE);
    GIVES(acldumpSaveExceptionInfo(NULL, NULL, &tensor, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpSaveExceptionInfo("../x", NULL, &tensor, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpSaveExceptionInfo("x", NULL, NULL, 1), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpSaveExceptionInfo("x", NULL, &tensor, 0), ACL_ERROR_INVALID_PARAM);
    GIVES(acldumpSaveExceptionInfo("x", NULL, &tensor, 1), ACL_ERROR_FAILURE);
    GIVES(aclopStartDumpArgs(1, NULL), ACL_ERROR_FAILURE);
    GIVES(aclopStartDumpArgs(0, "/tmp"), ACL_ERROR_FAILURE);
    GIVES(aclopStopDumpArgs(1), ACL_SUCCESS);
    HOLDS(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_FAILURE);
    HOLDS(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
}

static void ignore(void *arguments)
{
    (void)arguments;
}

static void newer(void)
{
    char text[ACL_PKG_VERSION_MAX_SIZE];
    char strange[] = "no such package";
    aclrtStream stream = NULL;
    uint32_t number = 0;
    float one = 1.0F;
    void *address = NULL;
    aclopHandle *handle = NULL;

    GIVES(aclrtLaunchHostFunc(STRANGE(void), NULL, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtLaunchHostFunc(STRANGE(void), ignore, NULL), (aclError)ACL_ERROR_RT_INVALID_HANDLE);
    GIVES(aclrtGetOverflowStatus(&one, sizeof one, NULL), (aclError)ACL_ERROR_RT_PARAM_INVALID);
    GIVES(aclrtResetOverflowStatus(STRANGE(void)), (aclError)ACL_ERROR_RT_INVALID_HANDLE);
    GIVES(aclrtSetStreamOverflowSwitch(STRANGE(void), 1), (aclError)ACL_ERROR_RT_INVALID_HANDLE);
    GIVES(aclrtGetStreamOverflowSwitch(NULL, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetDeviceSatMode(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtSetDeviceSatMode((aclrtFloatOverflowMode)9), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtStreamGetPriority(STRANGE(void), &number), (aclError)ACL_ERROR_RT_INVALID_HANDLE);
    GIVES(aclrtCtxGetCurrentDefaultStream(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtGetErrorVerbose(3, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtStreamWaitEventWithFlag(NULL, STRANGE(void), 2), ACL_ERROR_INVALID_PARAM);
    GIVES(aclsysGetVersionStr(strange, text), ACL_ERROR_INVALID_FILE);
    GIVES(aclsysGetVersionStr(strange, NULL), ACL_ERROR_INVALID_FILE);
    GIVES(aclGetCannAttributeList(NULL, NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtHostRegister(NULL, 4, ACL_HOST_REGISTER_MAPPED, &address), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtHostUnregister(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(aclrtMallocWithCfg(&address, 0, ACL_MEM_MALLOC_HUGE_FIRST, NULL), ACL_ERROR_INVALID_PARAM);

    GIVES(acldvppMalloc(NULL, 4), ACL_ERROR_INVALID_PARAM);
    GIVES(acldvppFree(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(acldvppSetPicDescData(STRANGE(acldvppPicDesc), &one), ACL_ERROR_INVALID_PARAM);
    GIVES(acldvppDestroyPicDesc(NULL), ACL_ERROR_INVALID_PARAM);
    GIVES(acldvppDestroyBatchPicDesc(STRANGE(acldvppBatchPicDesc)), ACL_ERROR_INVALID_PARAM);
    GIVES(acldvppSetRoiConfig(NULL, 0, 0, 0, 0), ACL_ERROR_INVALID_PARAM);
    HOLDS(acldvppCreateBatchPicDesc(UINT32_MAX) == NULL);
    HOLDS(acldvppGetPicDesc(NULL, 0) == NULL);
    HOLDS(acldvppGetStreamDescData(STRANGE(acldvppStreamDesc)) == NULL);
    GIVES(aclvdecCreateChannel(NULL), ACL_ERROR_API_NOT_SUPPORT);

    GIVES(aclblasCreateHandleForHgemm(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, ACL_COMPUTE_HIGH_PRECISION,
                                      NULL),
          ACL_ERROR_INVALID_PARAM);
    GIVES(aclblasCreateHandleForHgemm((aclTransType)7, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1,
                                      ACL_COMPUTE_HIGH_PRECISION, &handle),
          ACL_ERROR_INVALID_PARAM);
    /* More than the address space: nothing is read. */
    FAILS(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, INT32_MAX, INT32_MAX, INT32_MAX, &one, &one, -1,
                        ACL_FLOAT, &one, -1, ACL_FLOAT, &one, &one, -1, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION, NULL));
    MUST(aclrtCreateStream(&stream));
    MUST(aclrtDestroyStream(stream));
    GIVES(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, &one, &one, -1, ACL_FLOAT, &one, -1, ACL_FLOAT,
                        &one, &one, -1, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION, stream),
          (aclError)ACL_ERROR_RT_INVALID_HANDLE);
}

int main(void)
{
    before_init();
    GIVES(aclInit(NULL), ACL_SUCCESS);
    runtime();
    memory();
    data();
    counts();
    models();
    tensors_and_operators();
    dumps();
    newer();
    HOLDS(aclGetRecentErrMsg() != NULL);
    HOLDS(aclGetRecentErrMsg() == NULL);
    GIVES(aclrtResetDevice(0), ACL_SUCCESS);
    GIVES(aclFinalize(), ACL_SUCCESS);
    return n_wrong == 0 ? 0 : 1;
}
