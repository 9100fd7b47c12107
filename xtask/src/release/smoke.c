/* Loads a model through the C library; the exit code is the number of the call that failed. */
#include "acl/acl.h"

int main(void)
{
    uint32_t model = 0;
    if (aclInit(0) != ACL_SUCCESS) return 1;
    if (aclrtSetDevice(0) != ACL_SUCCESS) return 2;
    if (aclmdlLoadFromFile("digits_cnn.onnx", &model) != ACL_SUCCESS) return 3;
    if (aclmdlUnload(model) != ACL_SUCCESS) return 4;
    if (aclFinalize() != ACL_SUCCESS) return 5;
    return 0;
}
