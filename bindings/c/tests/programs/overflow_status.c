/* Reads and resets the overflow status around operators that overflow and operators that do not. */
#include <string.h>

#include "check.h"

static aclrtStream stream;

/* Multiplies two numbers with an operator. */
static float product(float a, float b)
{
    float values[2] = {a, b};
    float result = 0.0F;
    int64_t dims[1] = {1};
    aclTensorDesc *descs[3];
    aclDataBuffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        descs[i] = aclCreateTensorDesc(ACL_FLOAT, 1, dims, ACL_FORMAT_ND);
        buffers[i] = aclCreateDataBuffer(i < 2 ? &values[i] : &result, sizeof result);
    }
    MUST(aclopExecuteV2("Mul", 2, descs, buffers, 1, &descs[2], &buffers[2], NULL, stream));
    for (int i = 0; i < 3; i++) {
        aclDestroyTensorDesc(descs[i]);
        MUST(aclDestroyDataBuffer(buffers[i]));
    }
    return result;
}

static unsigned overflows(void)
{
    unsigned char status[64];
    uint32_t flag = 0;
    memset(status, 0xAA, sizeof status);
    MUST(aclrtGetOverflowStatus(status, sizeof status, stream));
    memcpy(&flag, status, sizeof flag);
    for (size_t i = sizeof flag; i < sizeof status; i++) {
        TRUE_OR_EXIT(status[i] == 0);
    }
    return flag;
}

int main(int argc, char **argv)
{
    unsigned char small[8];
    uint32_t is_on = 9;
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    /* With a configuration its dump is written in addition to the status. */
    MUST(aclInit(argc > 1 ? argv[1] : NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));

    /* The status was not requested yet, so this overflow goes unseen. */
    product(3e38F, 3e38F);
    TRUE_OR_EXIT(overflows() == 0);
    TRUE_OR_EXIT(product(2.0F, 3.0F) == 6.0F);
    TRUE_OR_EXIT(overflows() == 0);
    TRUE_OR_EXIT(product(3e38F, 3e38F) > 3.4e38F);
    TRUE_OR_EXIT(overflows() == 1);
    /* It stays until it is reset. */
    product(2.0F, 3.0F);
    TRUE_OR_EXIT(overflows() == 1);
    MUST(aclrtResetOverflowStatus(stream));
    TRUE_OR_EXIT(overflows() == 0);
    product(-3e38F, 3e38F);
    TRUE_OR_EXIT(overflows() == 1);

    MUST(aclrtSetStreamOverflowSwitch(stream, 1));
    MUST(aclrtGetStreamOverflowSwitch(stream, &is_on));
    TRUE_OR_EXIT(is_on == 1);
    TRUE_OR_EXIT(aclrtSetStreamOverflowSwitch(stream, 2) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(aclrtGetOverflowStatus(NULL, 64, stream) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(aclrtGetOverflowStatus(small, sizeof small, stream) == ACL_ERROR_RT_PARAM_INVALID);
    MUST(aclrtGetDeviceSatMode(&mode));
    TRUE_OR_EXIT(mode == ACL_RT_OVERFLOW_MODE_INFNAN);
    MUST(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    TRUE_OR_EXIT(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION) ==
                 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);

    MUST(aclrtDestroyStream(stream));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
