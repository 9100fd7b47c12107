/* Convolves an NHWC image with a kernel whose output channels are last, without a model: by name,
 * compiled and by handle. Prints the results; the argument is the configuration of a dump. */
#include "acl/acl_op_compiler.h"
#include "check.h"

#define N_IMAGE 18
#define N_KERNEL 12
#define N_RESULT 27

static void print(const float *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%g%s", numbers[i], i + 1 < n ? " " : "\n");
    }
}

int main(int argc, char **argv)
{
    float image[N_IMAGE];
    float kernel[N_KERNEL];
    float result[N_RESULT] = {0.0F};
    /* A 3x3 image with 2 channels; a 1x2 kernel for 2 input and 3 output channels. */
    int64_t image_dims[4] = {1, 3, 3, 2};
    int64_t kernel_dims[4] = {1, 2, 2, 3};
    int64_t result_dims[4] = {1, 3, 3, 3};
    int64_t ones[4] = {1, 1, 1, 1};
    int64_t pads[4] = {0, 0, 0, 1};
    aclopHandle *handle = NULL;

    for (int i = 0; i < N_IMAGE; i++) {
        image[i] = (float)(i % 7) - 2.0F;
    }
    for (int i = 0; i < N_KERNEL; i++) {
        kernel[i] = (float)(i % 5) - 1.0F;
    }
    TRUE_OR_EXIT(argc == 2);
    MUST(aclInit(argv[1]));
    MUST(aclrtSetDevice(0));
    aclTensorDesc *descs[2] = {
        aclCreateTensorDesc(ACL_FLOAT, 4, image_dims, ACL_FORMAT_NHWC),
        aclCreateTensorDesc(ACL_FLOAT, 4, kernel_dims, ACL_FORMAT_HWCN),
    };
    aclTensorDesc *result_descs[1] = {aclCreateTensorDesc(ACL_FLOAT, 4, result_dims, ACL_FORMAT_NHWC)};
    aclDataBuffer *buffers[2] = {aclCreateDataBuffer(image, sizeof image), aclCreateDataBuffer(kernel, sizeof kernel)};
    aclDataBuffer *results[1] = {aclCreateDataBuffer(result, sizeof result)};
    aclopAttr *attributes = aclopCreateAttr();
    MUST(aclopSetAttrListInt(attributes, "strides", 4, ones));
    MUST(aclopSetAttrListInt(attributes, "dilations", 4, ones));
    MUST(aclopSetAttrListInt(attributes, "pads", 4, pads));
    MUST(aclopSetAttrString(attributes, "data_format", "NHWC"));

    MUST(aclopExecuteV2("Conv2D", 2, descs, buffers, 1, result_descs, results, attributes, NULL));
    print(result, N_RESULT);
    result[0] = 1000.0F;
    MUST(aclopCompileAndExecute("Conv2D", 2, (const aclTensorDesc *const *)descs, (const aclDataBuffer *const *)buffers, 1,
                                (const aclTensorDesc *const *)result_descs, results, attributes, ACL_ENGINE_SYS,
                                ACL_COMPILE_SYS, NULL, NULL));
    print(result, N_RESULT);
    result[0] = 1000.0F;
    MUST(aclopCreateHandle("Conv2D", 2, (const aclTensorDesc *const *)descs, 1,
                           (const aclTensorDesc *const *)result_descs, attributes, &handle));
    MUST(aclopExecWithHandle(handle, 2, (const aclDataBuffer *const *)buffers, 1, results, NULL));
    print(result, N_RESULT);

    /* Contradictory and unsupported formats have separate codes. */
    MUST(aclSetTensorFormat(descs[0], ACL_FORMAT_NCHW));
    printf("conflict %d\n", aclopExecuteV2("Conv2D", 2, descs, buffers, 1, result_descs, results, attributes, NULL));
    aclTensorDesc *blocks = aclCreateTensorDesc(ACL_FLOAT, 4, image_dims, ACL_FORMAT_NC1HWC0);
    printf("blocks %d\n", aclopExecuteV2("Relu", 1, &blocks, buffers, 1, result_descs, results, NULL, NULL));

    aclopDestroyHandle(handle);
    aclopDestroyAttr(attributes);
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
