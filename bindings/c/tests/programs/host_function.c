/* Runs functions in the order of a stream, and queries versions, attributes and registered memory. */
#include <string.h>

#include "check.h"

static volatile int n_run;

static void note(void *arguments)
{
    /* Each function gets its number, and has to run in that order. */
    TRUE_OR_EXIT(*(int *)arguments == n_run);
    n_run++;
}

static void host_functions(void)
{
    aclrtStream stream = NULL;
    int turns[5] = {0, 1, 2, 3, 4};
    char from[4] = "abc";
    char to[4] = "";
    MUST(aclrtCreateStream(&stream));
    TRUE_OR_EXIT(aclrtLaunchHostFunc(stream, NULL, NULL) == ACL_ERROR_INVALID_PARAM);
    for (int i = 0; i < 5; i++) {
        MUST(aclrtLaunchHostFunc(stream, note, &turns[i]));
    }
    /* A copy after the functions waits for them. */
    MUST(aclrtMemcpyAsync(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_HOST, stream));
    TRUE_OR_EXIT(n_run == 5);
    MUST(aclrtSynchronizeStream(stream));
    MUST(aclrtDestroyStream(stream));
}

static void versions(void)
{
    char text[ACL_PKG_VERSION_MAX_SIZE];
    char runtime[] = "runtime";
    char kernels[] = "opp-kernel";
    char driver[] = "driver";
    int32_t number = 0;
    aclCANNPackageVersion version;
    MUST(aclsysGetVersionStr(runtime, text));
    TRUE_OR_EXIT(strcmp(text, "8.5.0") == 0);
    MUST(aclsysGetVersionNum(kernels, &number));
    TRUE_OR_EXIT(number == 80500000);
    MUST(aclsysGetCANNVersion(ACL_PKG_NAME_TOOLKIT, &version));
    TRUE_OR_EXIT(strcmp(version.version, "8.5.0") == 0 && strcmp(version.minorVersion, "5") == 0);
    TRUE_OR_EXIT(aclsysGetVersionStr(driver, text) == ACL_ERROR_INVALID_FILE);
    TRUE_OR_EXIT(aclsysGetCANNVersion(ACL_PKG_NAME_DRIVER, &version) == ACL_ERROR_INVALID_FILE);
    TRUE_OR_EXIT(aclsysGetVersionStr(NULL, text) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(aclsysGetVersionNum(runtime, NULL) == ACL_ERROR_INVALID_PARAM);
}

static void attributes(void)
{
    const aclCannAttr *list = NULL;
    size_t n = 0;
    int32_t value = -1;
    int64_t bytes = 0;
    aclrtErrorInfo fault;
    memset(&fault, 0xFF, sizeof fault);
    MUST(aclGetCannAttributeList(&list, &n));
    TRUE_OR_EXIT(n == 2 && list[0] == ACL_CANN_ATTR_INF_NAN);
    MUST(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
    TRUE_OR_EXIT(value == 0);
    TRUE_OR_EXIT(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value) == ACL_ERROR_INVALID_PARAM);
    MUST(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &bytes));
    TRUE_OR_EXIT(bytes > 1 << 20);
    TRUE_OR_EXIT(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &bytes) ==
                 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    TRUE_OR_EXIT(aclrtGetDeviceInfo(7, ACL_DEV_ATTR_AICPU_CORE_NUM, &bytes) ==
                 ACL_ERROR_RT_INVALID_DEVICEID);
    MUST(aclrtGetErrorVerbose(0, &fault));
    TRUE_OR_EXIT(fault.errorType == ACL_RT_NO_ERROR && fault.hasDetail == 0);
    TRUE_OR_EXIT(aclrtRepairError(0, &fault) == ACL_ERROR_API_NOT_SUPPORT);
    TRUE_OR_EXIT(strstr(aclGetRecentErrMsg(), "aclrtRepairError is not supported") != NULL);
}

static void memory(void)
{
    aclrtMallocConfig config = {NULL, 0};
    int value = 7;
    void *address = NULL;
    MUST(aclrtHostRegister(&value, sizeof value, ACL_HOST_REGISTER_MAPPED, &address));
    TRUE_OR_EXIT(address == &value);
    MUST(aclrtHostGetDevicePointer(&value, &address, 0));
    TRUE_OR_EXIT(address == &value);
    MUST(aclrtHostUnregister(&value));
    MUST(aclrtMallocWithCfg(&address, 64, ACL_MEM_MALLOC_HUGE_FIRST, &config));
    MUST(aclrtFree(address));
    MUST(aclrtMallocHostWithCfg(&address, 64, NULL));
    MUST(aclrtFreeHost(address));
}

static void streams(void)
{
    aclrtStream stream = NULL;
    aclrtStream given = NULL;
    uint32_t number = 0;
    MUST(aclrtCreateStreamWithConfig(&stream, 3, ACL_STREAM_FAST_SYNC));
    MUST(aclrtStreamGetPriority(stream, &number));
    TRUE_OR_EXIT(number == 3);
    MUST(aclrtStreamGetFlags(stream, &number));
    TRUE_OR_EXIT(number == ACL_STREAM_FAST_SYNC);
    MUST(aclrtCtxGetCurrentDefaultStream(&given));
    TRUE_OR_EXIT(given != NULL && given != stream);
    MUST(aclrtSynchronizeStream(given));
    MUST(aclrtDestroyStream(stream));
}

int main(void)
{
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    host_functions();
    versions();
    attributes();
    memory();
    streams();
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
