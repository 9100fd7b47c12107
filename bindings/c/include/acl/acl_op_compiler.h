#ifndef OPSCOPE_ACL_OP_COMPILER_H
#define OPSCOPE_ACL_OP_COMPILER_H

/* Compiling single operators. Nothing needs compiling here: an operator can be run as soon as it is named. */

#include "acl_base.h"
#include "acl_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclCompileType {
    ACL_COMPILE_SYS = 0,
    ACL_COMPILE_UNREGISTERED = 1
} aclopCompileType;

typedef enum {
    ACL_PRECISION_MODE = 0,
    ACL_AICORE_NUM = 1,
    ACL_AUTO_TUNE_MODE = 2,
    ACL_OP_SELECT_IMPL_MODE = 3,
    ACL_OPTYPELIST_FOR_IMPLMODE = 4,
    ACL_OP_DEBUG_LEVEL = 5,
    ACL_DEBUG_DIR = 6,
    ACL_OP_COMPILER_CACHE_MODE = 7,
    ACL_OP_COMPILER_CACHE_DIR = 8,
    ACL_OP_PERFORMANCE_MODE = 9,
    ACL_OP_JIT_COMPILE = 10,
    ACL_OP_DETERMINISTIC = 11,
    ACL_CUSTOMIZE_DTYPES = 12,
    ACL_OP_PRECISION_MODE = 13,
    ACL_ALLOW_HF32 = 14,
    ACL_PRECISION_MODE_V2 = 15,
    ACL_OP_DEBUG_OPTION = 16
} aclCompileOpt;

typedef enum aclCompileFlag {
    ACL_OP_COMPILE_DEFAULT = 0,
    ACL_OP_COMPILE_FUZZ = 1
} aclOpCompileFlag;

ACL_FUNC_VISIBILITY aclError aclopCompile(const char *op_type, int n_inputs, const aclTensorDesc *const input_descs[],
                                          int n_outputs, const aclTensorDesc *const output_descs[],
                                          const aclopAttr *attributes, aclopEngineType engine,
                                          aclopCompileType compile_type, const char *op_path);
ACL_FUNC_VISIBILITY aclError aclopCompileAndExecute(const char *op_type, int n_inputs,
                                                    const aclTensorDesc *const input_descs[],
                                                    const aclDataBuffer *const inputs[], int n_outputs,
                                                    const aclTensorDesc *const output_descs[],
                                                    aclDataBuffer *const outputs[], const aclopAttr *attributes,
                                                    aclopEngineType engine, aclopCompileType compile_type,
                                                    const char *op_path, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCompileAndExecuteV2(const char *op_type, int n_inputs, aclTensorDesc *input_descs[],
                                                      aclDataBuffer *inputs[], int n_outputs,
                                                      aclTensorDesc *output_descs[], aclDataBuffer *outputs[],
                                                      aclopAttr *attributes, aclopEngineType engine,
                                                      aclopCompileType compile_type, const char *op_path,
                                                      aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclSetCompileopt(aclCompileOpt option, const char *value);
ACL_FUNC_VISIBILITY size_t aclGetCompileoptSize(aclCompileOpt option);
ACL_FUNC_VISIBILITY aclError aclGetCompileopt(aclCompileOpt option, char *value, size_t size);
ACL_FUNC_VISIBILITY aclError aclopSetCompileFlag(aclOpCompileFlag flag);

#ifdef __cplusplus
}
#endif

#endif
