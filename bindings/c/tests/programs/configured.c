/* Initialises with the configuration argv[1] and gathers element argv[2] of four as a single operator. Prints the
   code of each step, and the report of the last failure. */
#include "acl/acl_op_compiler.h"
#include "check.h"

#define N 4

static aclError told(const char *step, aclError code)
{
    const char *report = code == ACL_SUCCESS ? NULL : aclGetRecentErrMsg();
    printf("%s %d\n%s", step, code, report == NULL ? "" : report);
    return code;
}

static aclError gather(int64_t index)
{
    float data[N] = {1.0F, 2.0F, 3.0F, 4.0F};
    float found[1] = {0.0F};
    int64_t many[1] = {N};
    int64_t one[1] = {1};
    aclTensorDesc *input_descs[2];
    aclTensorDesc *output_descs[1];
    aclDataBuffer *inputs[2];
    aclDataBuffer *outputs[1];

    input_descs[0] = aclCreateTensorDesc(ACL_FLOAT, 1, many, ACL_FORMAT_ND);
    input_descs[1] = aclCreateTensorDesc(ACL_INT64, 1, one, ACL_FORMAT_ND);
    output_descs[0] = aclCreateTensorDesc(ACL_FLOAT, 1, one, ACL_FORMAT_ND);
    inputs[0] = aclCreateDataBuffer(data, sizeof data);
    inputs[1] = aclCreateDataBuffer(&index, sizeof index);
    outputs[0] = aclCreateDataBuffer(found, sizeof found);
    return aclopExecuteV2("Gather", 2, input_descs, inputs, 1, output_descs, outputs, NULL, NULL);
}

int main(int argc, char **argv)
{
    TRUE_OR_EXIT(argc == 3);
    if (told("init", aclInit(argv[1])) != ACL_SUCCESS) {
        return 0;
    }
    MUST(aclmdlInitDump());
    told("set_dump", aclmdlSetDump(argv[1]));
    MUST(aclrtSetDevice(0));
    if (told("gather", gather(atoi(argv[2]))) == ACL_SUCCESS) {
        /* A failed dump is reported, but no call fails. */
        const char *report = aclGetRecentErrMsg();
        printf("%s", report == NULL ? "" : report);
    }
    MUST(aclmdlFinalizeDump());
    MUST(aclFinalize());
    return 0;
}
