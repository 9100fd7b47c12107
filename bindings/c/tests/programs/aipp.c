/* Runs a model on pictures that AIPP preprocesses, like programs for NPUs, and prints the library's answers. The
 * argument after the model is `static` or `dynamic`. */
#include <string.h>

#include "check.h"

static const uint8_t YUV[6] = {10, 20, 30, 40, 100, 200};
static const uint8_t BGR[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void print_dims(const char *name, const aclmdlIODims *dims)
{
    printf("%s [", name);
    for (size_t i = 0; i < dims->dimCount; i++) {
        printf("%s%lld", i == 0 ? "" : ",", (long long)dims->dims[i]);
    }
    printf("]\n");
}

static void describe(uint32_t id, aclmdlDesc *desc)
{
    aclmdlIODims dims;
    aclmdlInputAippType type;
    size_t attached = 0;

    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
        MUST(aclmdlGetAippType(id, i, &type, &attached));
        printf("%s type %d attached %zx size %zu format %d data %d\n", aclmdlGetInputNameByIndex(desc, i), type,
               attached, aclmdlGetInputSizeByIndex(desc, i), aclmdlGetInputFormat(desc, i),
               aclmdlGetInputDataType(desc, i));
        MUST(aclmdlGetInputDims(desc, i, &dims));
        print_dims("dims", &dims);
        MUST(aclmdlGetInputDimsV2(desc, i, &dims));
        print_dims("in bytes", &dims);
    }
}

/* The structure is large, and only its used part is written. */
static void print_info(uint32_t id)
{
    aclAippInfo *info = malloc(sizeof *info);
    TRUE_OR_EXIT(info != NULL);
    memset(info, 0x5a, sizeof *info);
    info->aippExtend = NULL;
    MUST(aclmdlGetFirstAippInfo(id, 0, info));
    printf("format %d picture %dx%d crop %d swap %d csc %d mean %d factor %g\n", info->inputFormat,
           info->srcImageSizeW, info->srcImageSizeH, info->cropSwitch, info->rbuvSwapSwitch, info->cscSwitch,
           info->meanChn0, info->varReciChn1);
    printf("source %d %d %zu shapes %zu bytes %zu %zu\n", info->srcFormat, info->srcDatatype, info->srcDimNum,
           info->shapeCount, info->outDims[0].srcSize, info->outDims[0].aippOutSize);
    print_dims("out", &info->outDims[0].aippOutdims);
    const unsigned char *behind = (const unsigned char *)&info->outDims[1];
    TRUE_OR_EXIT(behind[0] == 0x5a && info->aippExtend == NULL);
    free(info);
}

static void add_buffer(aclmdlDataset *dataset, size_t size, const void *content, size_t n)
{
    void *memory = NULL;
    MUST(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    if (content != NULL) {
        MUST(aclrtMemcpy(memory, size, content, n, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    MUST(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(memory, size)));
}

static void set_parameters(uint32_t id, aclmdlDesc *desc, aclmdlDataset *in)
{
    size_t index = 0;
    size_t size = 0;
    MUST(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_AIPP_NAME, &index));
    MUST(aclmdlGetAippDataSize(1, &size));
    TRUE_OR_EXIT(size == aclmdlGetInputSizeByIndex(desc, index));
    aclmdlAIPP *aipp = aclmdlCreateAIPP(1);
    TRUE_OR_EXIT(aipp != NULL);
    MUST(aclmdlSetAIPPInputFormat(aipp, ACL_RGB888_U8));
    MUST(aclmdlSetAIPPCscParams(aipp, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    MUST(aclmdlSetAIPPRbuvSwapSwitch(aipp, 1));
    MUST(aclmdlSetAIPPAxSwapSwitch(aipp, 0));
    MUST(aclmdlSetAIPPSrcImageSize(aipp, 2, 2));
    MUST(aclmdlSetAIPPScfParams(aipp, 0, 0, 0, 0, 0, 0));
    MUST(aclmdlSetAIPPCropParams(aipp, 1, 0, 1, 2, 1, 0));
    MUST(aclmdlSetAIPPPaddingParams(aipp, 1, 1, 0, 0, 0, 0));
    MUST(aclmdlSetAIPPDtcPixelMean(aipp, 1, 0, 0, 0, 0));
    MUST(aclmdlSetAIPPDtcPixelMin(aipp, 0.5f, 0.0f, 0.0f, 0.0f, 0));
    MUST(aclmdlSetAIPPPixelVarReci(aipp, 2.0f, 1.0f, 0.25f, 1.0f, 0));
    MUST(aclmdlSetInputAIPP(id, in, index, aipp));
    MUST(aclmdlSetAIPPByInputIndex(id, in, 0, aipp));
    MUST(aclmdlDestroyAIPP(aipp));
}

int main(int argc, char **argv)
{
    uint32_t id = 0;

    TRUE_OR_EXIT(argc == 3);
    int is_dynamic = strcmp(argv[2], "dynamic") == 0;
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclmdlLoadFromFile(argv[1], &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    MUST(aclmdlGetDesc(desc, id));
    describe(id, desc);
    print_info(id);

    aclmdlDataset *in = aclmdlCreateDataset();
    aclmdlDataset *out = aclmdlCreateDataset();
    add_buffer(in, aclmdlGetInputSizeByIndex(desc, 0), is_dynamic ? BGR : YUV, is_dynamic ? sizeof BGR : sizeof YUV);
    add_buffer(out, aclmdlGetOutputSizeByIndex(desc, 0), NULL, 0);
    if (is_dynamic) {
        add_buffer(in, aclmdlGetInputSizeByIndex(desc, 1), NULL, 0);
        set_parameters(id, desc, in);
    }
    MUST(aclmdlExecute(id, in, out));
    const float *numbers = aclGetDataBufferAddr(aclmdlGetDatasetBuffer(out, 0));
    for (size_t i = 0; i < 12; i++) {
        printf("%s%g", i == 0 ? "" : " ", numbers[i]);
    }
    printf("\n");
    MUST(aclFinalize());
    return 0;
}
