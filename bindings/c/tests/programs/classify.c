/*
 * Classifies images: classify MODEL IMAGES N_IMAGES.
 *
 * The usual order of calls, with host memory and device memory kept apart as on an NPU.
 */
#include "file.h"

static void *to_device(const void *host, size_t size)
{
    void *device = NULL;
    MUST(aclrtMalloc(&device, size, ACL_MEM_MALLOC_NORMAL_ONLY));
    MUST(aclrtMemcpy(device, size, host, size, ACL_MEMCPY_HOST_TO_DEVICE));
    return device;
}

static size_t largest(const float *scores, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (scores[i] > scores[best]) {
            best = i;
        }
    }
    return best;
}

static void print_classes(aclmdlDataset *outputs, size_t n_images)
{
    aclDataBuffer *buffer = aclmdlGetDatasetBuffer(outputs, 0);
    size_t size = aclGetDataBufferSizeV2(buffer);
    void *host = NULL;
    MUST(aclrtMallocHost(&host, size));
    MUST(aclrtMemcpy(host, size, aclGetDataBufferAddr(buffer), size, ACL_MEMCPY_DEVICE_TO_HOST));
    size_t n_classes = size / sizeof(float) / n_images;
    for (size_t i = 0; i < n_images; i++) {
        printf("%zu\n", largest((const float *)host + i * n_classes, n_classes));
    }
    MUST(aclrtFreeHost(host));
}

int main(int argc, char **argv)
{
    TRUE_OR_EXIT(argc == 4);
    size_t n_images = (size_t)strtoul(argv[3], NULL, 10);
    int32_t device = 0;
    aclrtContext context = NULL;
    aclrtStream stream = NULL;
    aclrtRunMode mode = ACL_DEVICE;
    uint32_t model = 0;

    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(device));
    MUST(aclrtCreateContext(&context, device));
    MUST(aclrtCreateStream(&stream));
    MUST(aclrtGetRunMode(&mode));
    TRUE_OR_EXIT(mode == ACL_HOST);

    MUST(aclmdlLoadFromFile(argv[1], &model));
    aclmdlDesc *desc = aclmdlCreateDesc();
    TRUE_OR_EXIT(desc != NULL);
    MUST(aclmdlGetDesc(desc, model));
    TRUE_OR_EXIT(aclmdlGetNumInputs(desc) == 1 && aclmdlGetNumOutputs(desc) == 1);

    size_t input_size = 0;
    unsigned char *images = read_file(argv[2], &input_size);
    size_t declared = aclmdlGetInputSizeByIndex(desc, 0);
    /* 0 for a model with an open batch dimension. */
    TRUE_OR_EXIT(declared == 0 || declared == input_size);
    void *device_images = to_device(images, input_size);
    free(images);
    aclmdlDataset *inputs = aclmdlCreateDataset();
    aclDataBuffer *input = aclCreateDataBuffer(device_images, input_size);
    MUST(aclmdlAddDatasetBuffer(inputs, input));

    size_t output_size = aclmdlGetOutputSizeByIndex(desc, 0);
    TRUE_OR_EXIT((declared == 0) == (output_size == 0));
    void *device_scores = NULL;
    if (output_size != 0) {
        MUST(aclrtMalloc(&device_scores, output_size, ACL_MEM_MALLOC_NORMAL_ONLY));
    }
    aclmdlDataset *outputs = aclmdlCreateDataset();
    aclDataBuffer *output = aclCreateDataBuffer(device_scores, output_size);
    MUST(aclmdlAddDatasetBuffer(outputs, output));

    MUST(aclmdlExecute(model, inputs, outputs));
    MUST(aclrtSynchronizeStream(stream));
    print_classes(outputs, n_images);

    MUST(aclrtFree(aclGetDataBufferAddr(output)));
    MUST(aclDestroyDataBuffer(output));
    MUST(aclmdlDestroyDataset(outputs));
    MUST(aclrtFree(aclGetDataBufferAddr(input)));
    MUST(aclDestroyDataBuffer(input));
    MUST(aclmdlDestroyDataset(inputs));
    MUST(aclmdlUnload(model));
    MUST(aclmdlDestroyDesc(desc));
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtDestroyContext(context));
    MUST(aclrtResetDevice(device));
    MUST(aclFinalize());
    return 0;
}
