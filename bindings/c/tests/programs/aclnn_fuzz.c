/* Calls functions of tensors, lists and operators in a random order, with handles that are valid, of another kind,
 * destroyed or invented. The argument is the seed. Prints how many calls succeeded and failed. */
#include <string.h>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_cumsum.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "check.h"

#define N_HANDLES 24
#define N_CALLS 4000
#define N_ELEMENTS 64

static uint64_t state;

static uint32_t below(uint32_t end)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 33) % end;
}

static void *handles[N_HANDLES];
static void *memory;

static void *any(void)
{
    return below(16) == 0 ? (void *)(uintptr_t)below(100000) : handles[below(N_HANDLES)];
}

static void keep(void *made)
{
    if (made != NULL) {
        handles[below(N_HANDLES)] = made;
    }
}

static aclDataType any_type(void)
{
    const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_INT32, ACL_INT64, ACL_BOOL, ACL_COMPLEX64, ACL_DOUBLE};
    return types[below(sizeof types / sizeof *types)];
}

static void make_tensor(void)
{
    int64_t dims[4];
    int64_t strides[4];
    int64_t storage = N_ELEMENTS / (1 + below(3));
    uint64_t n = below(4);
    for (uint64_t i = 0; i < n; i++) {
        dims[i] = (int64_t)below(5) - (below(40) == 0);
        strides[i] = (int64_t)below(6) - (below(40) == 0);
    }
    keep(aclCreateTensor(dims, n, any_type(), below(3) == 0 ? NULL : strides, below(4), ACL_FORMAT_ND, &storage, 1,
                         below(10) == 0 ? NULL : memory));
}

static void make_list(void)
{
    int64_t numbers[3] = {0, below(3), (int64_t)below(4) - 2};
    const bool flags[2] = {true, false};
    double value = below(5);
    const aclTensor *tensors[2] = {any(), any()};
    switch (below(5)) {
    case 0:
        keep(aclCreateIntArray(numbers, below(4)));
        break;
    case 1:
        keep(aclCreateBoolArray(flags, 2));
        break;
    case 2:
        keep(aclCreateTensorList(tensors, 2));
        break;
    default:
        keep(aclCreateScalar(&value, below(4) == 0 ? ACL_INT64 : ACL_DOUBLE));
    }
}

static int destroy(void)
{
    switch (below(7)) {
    case 0:
        return aclDestroyTensor(any());
    case 1:
        return aclDestroyScalar(any());
    case 2:
        return aclDestroyIntArray(any());
    case 3:
        return aclDestroyTensorList(any());
    case 4:
        return aclDestroyBoolArray(any());
    case 5:
        return aclDestroyAclOpExecutor(any());
    default:
        return aclSetAclOpExecutorRepeatable(any());
    }
}

static int prepare(void)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    int code = 0;
    switch (below(6)) {
    case 0:
        code = aclnnAddGetWorkspaceSize(any(), any(), any(), any(), &size, &executor);
        break;
    case 1:
        code = aclnnInplaceAddsGetWorkspaceSize(any(), any(), any(), &size, &executor);
        break;
    case 2:
        code = aclnnReduceSumGetWorkspaceSize(any(), any(), below(2), any_type(), any(), &size, &executor);
        break;
    case 3:
        code = aclnnClampGetWorkspaceSize(any(), any(), NULL, any(), &size, &executor);
        break;
    case 4:
        code = aclnnCumsumGetWorkspaceSize(any(), (int64_t)below(5) - 2, any_type(), any(), &size, &executor);
        break;
    default:
        code = aclnnCastGetWorkspaceSize(any(), any_type(), any(), below(20) == 0 ? NULL : &size, &executor);
    }
    keep(executor);
    return code;
}

static int run(void)
{
    switch (below(5)) {
    case 0:
        return aclnnAdd(NULL, 0, any(), NULL);
    case 1:
        return aclnnInplaceAdds(memory, 0, any(), NULL);
    case 2:
        return aclnnReduceSum(NULL, 0, any(), NULL);
    case 3:
        return aclnnCast(NULL, 0, any(), below(20) == 0 ? any() : NULL);
    default:
        return aclSetInputTensorAddr(any(), 0, any(), memory);
    }
}

static int ask(void)
{
    int64_t *dims = NULL;
    uint64_t n = 0;
    int64_t offset = 0;
    aclFormat format = ACL_FORMAT_UNDEFINED;
    int code = 0;
    switch (below(5)) {
    case 0:
        code = aclGetViewShape(any(), &dims, &n);
        break;
    case 1:
        code = aclGetViewStrides(any(), below(9) == 0 ? NULL : &dims, &n);
        break;
    case 2:
        return aclGetViewOffset(any(), &offset);
    case 3:
        return aclGetFormat(any(), &format);
    default:
        return aclGetTensorListSize(any(), &n);
    }
    free(dims);
    return code;
}

int main(int argc, char **argv)
{
    int n_fine = 0;
    int n_refused = 0;
    TRUE_OR_EXIT(argc == 2);
    state = strtoull(argv[1], NULL, 10);
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtMalloc(&memory, N_ELEMENTS * sizeof(double), ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < N_CALLS; i++) {
        int code = 0;
        switch (below(8)) {
        case 0:
        case 1:
            make_tensor();
            break;
        case 2:
            make_list();
            break;
        case 3:
            code = destroy();
            break;
        case 4:
        case 5:
            code = prepare();
            break;
        case 6:
            code = run();
            break;
        default:
            code = ask();
        }
        if (code == ACL_SUCCESS) {
            n_fine++;
        } else {
            n_refused++;
            TRUE_OR_EXIT(code == 161001 || code == 161002 || code == 361001 || code == 561000);
        }
    }
    MUST(aclrtFree(memory));
    MUST(aclFinalize());
    printf("%d %d\n", n_fine, n_refused);
    return 0;
}
