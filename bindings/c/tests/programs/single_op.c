/* Adds two tensors without a model, once by name and once by handle, and prints the sums. */
#include "acl/acl_op_compiler.h"
#include "check.h"

#define N 4

int main(void)
{
    float a[N] = {1.0F, 2.0F, 3.0F, 4.0F};
    float b[N] = {10.0F, 20.0F, 30.0F, 40.0F};
    float sum[N] = {0.0F, 0.0F, 0.0F, 0.0F};
    int64_t dims[2] = {2, 2};
    aclTensorDesc *input_descs[2];
    aclTensorDesc *output_descs[1];
    aclDataBuffer *inputs[2];
    aclDataBuffer *outputs[1];
    aclopHandle *handle = NULL;

    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    for (int i = 0; i < 2; i++) {
        input_descs[i] = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
        TRUE_OR_EXIT(input_descs[i] != NULL);
    }
    output_descs[0] = aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
    TRUE_OR_EXIT(aclGetTensorDescSize(output_descs[0]) == sizeof sum);
    inputs[0] = aclCreateDataBuffer(a, sizeof a);
    inputs[1] = aclCreateDataBuffer(b, sizeof b);
    outputs[0] = aclCreateDataBuffer(sum, sizeof sum);
    aclopAttr *attributes = aclopCreateAttr();

    MUST(aclopExecuteV2("Add", 2, input_descs, inputs, 1, output_descs, outputs, attributes, NULL));
    printf("%g %g %g %g\n", sum[0], sum[1], sum[2], sum[3]);

    MUST(aclopCompile("Add", 2, (const aclTensorDesc *const *)input_descs, 1,
                      (const aclTensorDesc *const *)output_descs, attributes, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL));
    MUST(aclopCreateHandle("Add", 2, (const aclTensorDesc *const *)input_descs, 1,
                           (const aclTensorDesc *const *)output_descs, attributes, &handle));
    a[0] = 100.0F;
    MUST(aclopExecWithHandle(handle, 2, (const aclDataBuffer *const *)inputs, 1, outputs, NULL));
    printf("%g %g %g %g\n", sum[0], sum[1], sum[2], sum[3]);

    aclopDestroyHandle(handle);
    aclopDestroyAttr(attributes);
    for (int i = 0; i < 2; i++) {
        aclDestroyTensorDesc(input_descs[i]);
        MUST(aclDestroyDataBuffer(inputs[i]));
    }
    aclDestroyTensorDesc(output_descs[0]);
    MUST(aclDestroyDataBuffer(outputs[0]));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
