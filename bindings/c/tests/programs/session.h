/* A model that runs on one input file, shared by several programs. */
#ifndef SESSION_H
#define SESSION_H

#include "file.h"

/* Loads the model, runs it n times and unloads it. The library allocates the outputs. */
static void run_model(const char *model, const char *input, int n)
{
    uint32_t id = 0;
    size_t size = 0;
    unsigned char *bytes = read_file(input, &size);
    void *device_input = NULL;

    MUST(aclmdlLoadFromFile(model, &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    MUST(aclmdlGetDesc(desc, id));
    TRUE_OR_EXIT(aclmdlGetNumInputs(desc) == 1);

    MUST(aclrtMalloc(&device_input, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMemcpy(device_input, size, bytes, size, ACL_MEMCPY_HOST_TO_DEVICE));
    aclmdlDataset *inputs = aclmdlCreateDataset();
    aclDataBuffer *input_buffer = aclCreateDataBuffer(device_input, size);
    MUST(aclmdlAddDatasetBuffer(inputs, input_buffer));

    for (int i = 0; i < n; i++) {
        aclmdlDataset *outputs = aclmdlCreateDataset();
        for (size_t j = 0; j < aclmdlGetNumOutputs(desc); j++) {
            MUST(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(NULL, 0)));
        }
        MUST(aclmdlExecute(id, inputs, outputs));
        for (size_t j = 0; j < aclmdlGetDatasetNumBuffers(outputs); j++) {
            aclDataBuffer *buffer = aclmdlGetDatasetBuffer(outputs, j);
            TRUE_OR_EXIT(aclGetDataBufferAddr(buffer) != NULL && aclGetDataBufferSizeV2(buffer) > 0);
            MUST(aclrtFree(aclGetDataBufferAddr(buffer)));
            MUST(aclDestroyDataBuffer(buffer));
        }
        MUST(aclmdlDestroyDataset(outputs));
    }

    MUST(aclDestroyDataBuffer(input_buffer));
    MUST(aclmdlDestroyDataset(inputs));
    MUST(aclrtFree(device_input));
    MUST(aclmdlDestroyDesc(desc));
    MUST(aclmdlUnload(id));
    free(bytes);
}

#endif
