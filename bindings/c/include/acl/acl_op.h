#ifndef OPSCOPE_ACL_OP_H
#define OPSCOPE_ACL_OP_H

/* Single operators: attributes, and running one operator without a model. */

#include "acl_base.h"
#include "acl_dump.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopHandle aclopHandle;
typedef struct aclopAttr aclopAttr;
typedef struct aclopKernelDesc aclopKernelDesc;
typedef void (*aclDataDeallocator)(void *data, size_t size);

static const int ACL_COMPILE_FLAG_BIN_SELECTOR = 1;

typedef enum aclEngineType {
    ACL_ENGINE_SYS = 0,
    ACL_ENGINE_AICORE = 1,
    ACL_ENGINE_VECTOR = 2
} aclopEngineType;

/* ---- Where operators come from */

ACL_FUNC_VISIBILITY aclError aclopSetModelDir(const char *dir);
ACL_FUNC_VISIBILITY aclError aclopLoad(const void *model, size_t size);

/* ---- Attributes */

ACL_FUNC_VISIBILITY aclopAttr *aclopCreateAttr(void);
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr *attributes);
ACL_FUNC_VISIBILITY aclError aclopSetAttrBool(aclopAttr *attributes, const char *name, uint8_t value);
ACL_FUNC_VISIBILITY aclError aclopSetAttrInt(aclopAttr *attributes, const char *name, int64_t value);
ACL_FUNC_VISIBILITY aclError aclopSetAttrFloat(aclopAttr *attributes, const char *name, float value);
ACL_FUNC_VISIBILITY aclError aclopSetAttrString(aclopAttr *attributes, const char *name, const char *value);
ACL_FUNC_VISIBILITY aclError aclopSetAttrDataType(aclopAttr *attributes, const char *name, aclDataType value);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListDataType(aclopAttr *attributes, const char *name, int n_values,
                                                      const aclDataType values[]);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListBool(aclopAttr *attributes, const char *name, int n_values,
                                                  const uint8_t *values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListInt(aclopAttr *attributes, const char *name, int n_values,
                                                 const int64_t *values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListFloat(aclopAttr *attributes, const char *name, int n_values,
                                                   const float *values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListString(aclopAttr *attributes, const char *name, int n_values,
                                                    const char **values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListListInt(aclopAttr *attributes, const char *name, int n_lists,
                                                     const int *n_values, const int64_t *const values[]);

/* ---- Running */

ACL_FUNC_VISIBILITY aclError aclopExecute(const char *op_type, int n_inputs, const aclTensorDesc *const input_descs[],
                                          const aclDataBuffer *const inputs[], int n_outputs,
                                          const aclTensorDesc *const output_descs[], aclDataBuffer *const outputs[],
                                          const aclopAttr *attributes, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopExecuteV2(const char *op_type, int n_inputs, aclTensorDesc *input_descs[],
                                            aclDataBuffer *inputs[], int n_outputs, aclTensorDesc *output_descs[],
                                            aclDataBuffer *outputs[], aclopAttr *attributes, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCreateHandle(const char *op_type, int n_inputs,
                                               const aclTensorDesc *const input_descs[], int n_outputs,
                                               const aclTensorDesc *const output_descs[],
                                               const aclopAttr *attributes, aclopHandle **handle);
ACL_FUNC_VISIBILITY void aclopDestroyHandle(aclopHandle *handle);
ACL_FUNC_VISIBILITY aclError aclopExecWithHandle(aclopHandle *handle, int n_inputs,
                                                 const aclDataBuffer *const inputs[], int n_outputs,
                                                 aclDataBuffer *const outputs[], aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCast(const aclTensorDesc *from_desc, const aclDataBuffer *from,
                                       const aclTensorDesc *to_desc, aclDataBuffer *to, uint8_t truncate,
                                       aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCreateHandleForCast(aclTensorDesc *from_desc, aclTensorDesc *to_desc,
                                                      uint8_t truncate, aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclopInferShape(const char *op_type, int n_inputs, aclTensorDesc *input_descs[],
                                             aclDataBuffer *inputs[], int n_outputs, aclTensorDesc *output_descs[],
                                             aclopAttr *attributes);
ACL_FUNC_VISIBILITY aclError aclopUpdateParams(const char *op_type, int n_inputs,
                                               const aclTensorDesc *const input_descs[], int n_outputs,
                                               const aclTensorDesc *const output_descs[],
                                               const aclopAttr *attributes);
ACL_FUNC_VISIBILITY aclError aclopSetMaxOpQueueNum(uint64_t max);

/* ---- Kernels of the program's own: machine code of an NPU, which nothing here can run. */

typedef aclError (*aclopCompileFunc)(int n_inputs, const aclTensorDesc *const input_descs[], int n_outputs,
                                     const aclTensorDesc *const output_descs[], const aclopAttr *attributes,
                                     aclopKernelDesc *kernel);

ACL_FUNC_VISIBILITY aclError aclopCreateKernel(const char *op_type, const char *kernel_id, const char *kernel_name,
                                               void *code, int code_size, aclopEngineType engine,
                                               aclDataDeallocator deallocate);
ACL_FUNC_VISIBILITY aclError aclopRegisterCompileFunc(const char *op_type, aclopCompileFunc function);
ACL_FUNC_VISIBILITY aclError aclopUnregisterCompileFunc(const char *op_type);
ACL_FUNC_VISIBILITY aclError aclopSetKernelArgs(aclopKernelDesc *kernel, const char *kernel_id, uint32_t n_blocks,
                                                const void *args, uint32_t args_size);
ACL_FUNC_VISIBILITY aclError aclopSetKernelWorkspaceSizes(aclopKernelDesc *kernel, int n_workspaces, size_t *sizes);

#ifdef __cplusplus
}
#endif

#endif
