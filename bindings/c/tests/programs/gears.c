/* Runs a model in each of its gears, in the way that programs for NPUs switch batch, image size or dimensions, and prints
 * the library's answers. The argument after the model is `batch`, `size` or `dims`. */
#include <string.h>

#include "check.h"

#define ALL ((size_t)-1)

static void print_dims(const char *name, const aclmdlIODims *dims)
{
    printf("%s [", name);
    for (size_t i = 0; i < dims->dimCount; i++) {
        printf("%s%lld", i == 0 ? "" : ",", (long long)dims->dims[i]);
    }
    printf("]");
}

/* Creates a buffer for each input, with the number and the sizes that the library reports. */
static aclmdlDataset *make_inputs(aclmdlDesc *desc, size_t shape_index)
{
    aclmdlDataset *inputs = aclmdlCreateDataset();
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
        void *memory = NULL;
        size_t size = aclmdlGetInputSizeByIndex(desc, i);
        TRUE_OR_EXIT(size > 0);
        MUST(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
        if (i != shape_index) {
            float *numbers = memory;
            for (size_t j = 0; j < size / sizeof(float); j++) {
                numbers[j] = (float)j;
            }
        }
        MUST(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(memory, size)));
    }
    return inputs;
}

static aclmdlDataset *make_outputs(aclmdlDesc *desc)
{
    aclmdlDataset *outputs = aclmdlCreateDataset();
    for (size_t i = 0; i < aclmdlGetNumOutputs(desc); i++) {
        void *memory = NULL;
        size_t size = aclmdlGetOutputSizeByIndex(desc, i);
        TRUE_OR_EXIT(size > 0);
        MUST(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
        MUST(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(memory, size)));
    }
    return outputs;
}

/* Executes in the current gear and prints shape and sum of the first output. */
static void run(uint32_t id, aclmdlDesc *desc, aclmdlDataset *inputs, aclmdlDataset *outputs)
{
    aclmdlIODims dims;
    size_t n = 1;
    double sum = 0.0;

    /* The gear determines the shape. */
    MUST(aclmdlGetCurOutputDims(desc, 0, &dims));
    MUST(aclmdlExecute(id, inputs, outputs));
    for (size_t i = 0; i < dims.dimCount; i++) {
        n *= (size_t)dims.dims[i];
    }
    const float *numbers = aclGetDataBufferAddr(aclmdlGetDatasetBuffer(outputs, 0));
    for (size_t i = 0; i < n; i++) {
        sum += numbers[i];
    }
    print_dims(" ->", &dims);
    printf(" sum %g\n", sum);
}

static void run_batches(uint32_t id, aclmdlDesc *desc, aclmdlDataset *in, aclmdlDataset *out, size_t index)
{
    aclmdlBatch batch;
    MUST(aclmdlGetDynamicBatch(desc, &batch));
    for (size_t i = 0; i < batch.batchCount; i++) {
        MUST(aclmdlSetDynamicBatchSize(id, in, index, batch.batch[i]));
        printf("batch %llu", (unsigned long long)batch.batch[i]);
        run(id, desc, in, out);
    }
    printf("refused %d %d %d\n", aclmdlSetDynamicBatchSize(id, in, index, 1000),
           aclmdlSetDynamicBatchSize(id, in, index, 0), aclmdlSetDynamicHWSize(id, in, index, 1, 1));
}

static void run_sizes(uint32_t id, aclmdlDesc *desc, aclmdlDataset *in, aclmdlDataset *out, size_t index)
{
    aclmdlHW size;
    MUST(aclmdlGetDynamicHW(desc, ALL, &size));
    for (size_t i = 0; i < size.hwCount; i++) {
        MUST(aclmdlSetDynamicHWSize(id, in, index, size.hw[i][0], size.hw[i][1]));
        printf("size %llux%llu", (unsigned long long)size.hw[i][0], (unsigned long long)size.hw[i][1]);
        run(id, desc, in, out);
    }
    printf("refused %d %d %d\n", aclmdlSetDynamicHWSize(id, in, index, size.hw[0][0], 1000),
           aclmdlSetDynamicHWSize(id, in, index, 0, 1), aclmdlSetDynamicBatchSize(id, in, index, 1));
}

static void run_dims(uint32_t id, aclmdlDesc *desc, aclmdlDataset *in, aclmdlDataset *out, size_t index)
{
    size_t n = 0;
    MUST(aclmdlGetInputDynamicGearCount(desc, ALL, &n));
    aclmdlIODims *gears = calloc(n, sizeof *gears);
    TRUE_OR_EXIT(gears != NULL);
    TRUE_OR_EXIT(aclmdlGetInputDynamicDims(desc, ALL, gears, n - 1) == ACL_ERROR_INVALID_PARAM);
    MUST(aclmdlGetInputDynamicDims(desc, ALL, gears, n));
    for (size_t i = 0; i < n; i++) {
        MUST(aclmdlSetInputDynamicDims(id, in, index, &gears[i]));
        print_dims("dims", &gears[i]);
        run(id, desc, in, out);
    }
    aclmdlIODims wrong = gears[0];
    wrong.dims[0] = 1000;
    int not_listed = aclmdlSetInputDynamicDims(id, in, index, &wrong);
    wrong.dimCount--;
    printf("refused %d %d %d\n", not_listed, aclmdlSetInputDynamicDims(id, in, index, &wrong),
           aclmdlSetDynamicBatchSize(id, in, index, 1));
    free(gears);
}

int main(int argc, char **argv)
{
    uint32_t id = 0;
    size_t index = 0;

    TRUE_OR_EXIT(argc == 3 || argc == 4);
    MUST(aclInit(argc == 4 ? argv[3] : NULL));
    MUST(aclrtSetDevice(0));
    aclError loaded = aclmdlLoadFromFile(argv[1], &id);
    if (loaded != ACL_SUCCESS) {
        const char *text = aclGetRecentErrMsg();
        printf("load %d %s\n", loaded, text == NULL ? "" : text);
        return 0;
    }
    aclmdlDesc *desc = aclmdlCreateDesc();
    MUST(aclmdlGetDesc(desc, id));
    MUST(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
        aclmdlIODims dims;
        MUST(aclmdlGetInputDims(desc, i, &dims));
        print_dims(aclmdlGetInputNameByIndex(desc, i), &dims);
        printf(" %zu bytes\n", aclmdlGetInputSizeByIndex(desc, i));
    }
    aclmdlDataset *inputs = make_inputs(desc, index);
    aclmdlDataset *outputs = make_outputs(desc);
    if (strcmp(argv[2], "batch") == 0) {
        run_batches(id, desc, inputs, outputs, index);
    } else if (strcmp(argv[2], "size") == 0) {
        run_sizes(id, desc, inputs, outputs, index);
    } else {
        run_dims(id, desc, inputs, outputs, index);
    }
    MUST(aclmdlUnload(id));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
