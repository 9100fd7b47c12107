/* Adds tensors in two stages: views with strides, in place, and with an executor that runs twice. The arguments are a
 * configuration and, optionally, a directory for descriptions of the operators. Prints the results. */
#include "acl/acl_dump.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_floor_divide.h"
#include "check.h"

#define N 6

static float *device(const float *values)
{
    void *memory = NULL;
    MUST(aclrtMalloc(&memory, N * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMemcpy(memory, N * sizeof(float), values, N * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));
    return memory;
}

static aclTensor *tensor(float *memory, int64_t rows, int64_t columns, int64_t down, int64_t right)
{
    int64_t dims[2] = {rows, columns};
    int64_t strides[2] = {down, right};
    int64_t storage = N;
    aclTensor *made = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &storage, 1, memory);
    TRUE_OR_EXIT(made != NULL);
    return made;
}

static void show(const char *what, const float *values)
{
    printf("%s", what);
    for (int i = 0; i < N; i++) {
        printf(" %g", values[i]);
    }
    printf("\n");
}

static void run_add(const aclTensor *a, const aclTensor *b, const aclScalar *alpha, aclTensor *out, aclrtStream stream)
{
    uint64_t size = 1;
    aclOpExecutor *executor = NULL;
    MUST(aclnnAddGetWorkspaceSize(a, b, alpha, out, &size, &executor));
    TRUE_OR_EXIT(size == 0 && executor != NULL);
    MUST(aclnnAdd(NULL, size, executor, stream));
    MUST(aclrtSynchronizeStream(stream));
    /* A used executor is no longer valid. */
    TRUE_OR_EXIT(aclnnAdd(NULL, size, executor, stream) == 161002);
    TRUE_OR_EXIT(aclGetRecentErrMsg() != NULL);
}

static void run_twice(aclTensor *a, const aclTensor *b, const aclScalar *alpha, aclTensor *out, float *other)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    MUST(aclnnAddGetWorkspaceSize(a, b, alpha, out, &size, &executor));
    MUST(aclSetAclOpExecutorRepeatable(executor));
    MUST(aclnnAdd(NULL, size, executor, NULL));
    MUST(aclSetInputTensorAddr(executor, 0, a, other));
    MUST(aclnnAdd(NULL, size, executor, NULL));
    MUST(aclDestroyAclOpExecutor(executor));
    TRUE_OR_EXIT(aclDestroyAclOpExecutor(executor) == 161002);
}

static void ask(const aclTensor *asked)
{
    int64_t *dims = NULL;
    uint64_t n = 0;
    aclDataType type = ACL_DT_UNDEFINED;
    MUST(aclGetViewShape(asked, &dims, &n));
    TRUE_OR_EXIT(n == 2 && dims[0] == 3 && dims[1] == 2);
    free(dims);
    MUST(aclGetViewStrides(asked, &dims, &n));
    TRUE_OR_EXIT(n == 2 && dims[0] == 1 && dims[1] == 3);
    free(dims);
    MUST(aclGetStorageShape(asked, &dims, &n));
    TRUE_OR_EXIT(n == 1 && dims[0] == N);
    free(dims);
    MUST(aclGetDataType(asked, &type));
    TRUE_OR_EXIT(type == ACL_FLOAT);
}

int main(int argc, char **argv)
{
    const float first[N] = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
    const float second[N] = {10.0F, 20.0F, 30.0F, 40.0F, 50.0F, 60.0F};
    const float none[N] = {0.0F};
    float one = 1.0F;
    aclrtStream stream = NULL;

    MUST(aclInit(argc > 1 ? argv[1] : NULL));
    MUST(aclnnInit(NULL));
    if (argc > 2) {
        MUST(aclopStartDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS, argv[2]));
    }
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));
    float *a = device(first);
    float *b = device(second);
    float *sum = device(none);
    aclTensor *rows = tensor(a, 3, 2, 2, 1);
    aclTensor *turned = tensor(b, 3, 2, 1, 3);
    aclTensor *out = tensor(sum, 3, 2, 2, 1);
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    TRUE_OR_EXIT(alpha != NULL);
    ask(turned);

    run_add(rows, turned, alpha, out, stream);
    show("add", sum);
    run_twice(rows, turned, alpha, out, b);
    show("again", sum);

    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    MUST(aclnnInplaceDivGetWorkspaceSize(out, turned, &size, &executor));
    TRUE_OR_EXIT(aclnnInplaceAdd(NULL, size, executor, stream) == 161002);
    MUST(aclnnInplaceDiv(NULL, size, executor, stream));
    show("divided", sum);
    MUST(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS));

    /* A failure at run time, which an exception scene dumps. */
    int64_t n = 1;
    int32_t zero = 0;
    aclTensor *nothing = aclCreateTensor(&n, 1, ACL_INT32, NULL, 0, ACL_FORMAT_ND, &n, 1, &zero);
    TRUE_OR_EXIT(nothing != NULL);
    MUST(aclnnInplaceFloorDivideGetWorkspaceSize(nothing, nothing, &size, &executor));
    TRUE_OR_EXIT(aclnnInplaceFloorDivide(NULL, size, executor, stream) == 361001);
    MUST(aclDestroyTensor(nothing));

    MUST(aclDestroyTensor(rows));
    MUST(aclDestroyTensor(turned));
    MUST(aclDestroyTensor(out));
    TRUE_OR_EXIT(aclDestroyTensor(out) == 161002 && aclDestroyTensor(NULL) == 161001);
    MUST(aclDestroyScalar(alpha));
    MUST(aclrtFree(a));
    MUST(aclrtFree(b));
    MUST(aclrtFree(sum));
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtResetDevice(0));
    MUST(aclnnFinalize());
    MUST(aclFinalize());
    return 0;
}
