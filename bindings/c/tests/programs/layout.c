/* Prints the sizes of structures and the offsets of their members for a C compiler. */
#include <stdio.h>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"

int main(void)
{
    printf("aclmdlIODims %zu\n", sizeof(aclmdlIODims));
    printf("aclmdlIODimsRange %zu\n", sizeof(aclmdlIODimsRange));
    printf("aclmdlBatch %zu\n", sizeof(aclmdlBatch));
    printf("aclmdlHW %zu\n", sizeof(aclmdlHW));
    printf("aclAippDims %zu\n", sizeof(aclAippDims));
    printf("aclAippInfo %zu\n", offsetof(aclAippInfo, outDims));
    printf("acldumpChunk %zu\n", sizeof(acldumpChunk));
    printf("acldumpChunk.offset %zu\n", offsetof(acldumpChunk, offset));
    printf("acldumpChunk.dataBuf %zu\n", offsetof(acldumpChunk, dataBuf));
    printf("acldumpTensorInfo %zu\n", sizeof(acldumpTensorInfo));
    printf("acldumpTensorInfo.shape %zu\n", offsetof(acldumpTensorInfo, shape));
    printf("aclrtErrorInfo %zu\n", sizeof(aclrtErrorInfo));
    printf("aclCANNPackageVersion %zu\n", sizeof(aclCANNPackageVersion));
    printf("aclDataType %zu\n", sizeof(aclDataType));
    printf("aclrtMemMallocPolicy %zu\n", sizeof(aclrtMemMallocPolicy));
    return ACL_SUCCESS;
}
