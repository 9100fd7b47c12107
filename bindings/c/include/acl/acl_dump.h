#ifndef OPSCOPE_ACL_DUMP_H
#define OPSCOPE_ACL_DUMP_H

/* Where dumps go, and dumps that a program takes itself instead of finding them on disk. */

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"

#ifdef __GNUC__
#define ACL_DUMP_API __attribute__((visibility("default")))
#define ACL_DUMP_WEAK __attribute__((weak))
/* An array of no elements is an extension that both languages of GCC have. */
#define ACL_DUMP_EXTENSION __extension__
#else
#define ACL_DUMP_API
#define ACL_DUMP_WEAK
#define ACL_DUMP_EXTENSION
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Chunks */

#define ACL_DUMP_MAX_FILE_PATH_LENGTH 4096

/* A piece of a file that would have been written. The pieces of one file come in order. */
typedef struct acldumpChunk {
    char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH]; /* the absolute path of the file */
    uint32_t bufLen;                              /* bytes in dataBuf */
    uint32_t isLastChunk;                         /* 1 on the last piece of the file */
    int64_t offset;                               /* where the piece belongs; -1: after the one before */
    int32_t flag;                                 /* 0 */
    ACL_DUMP_EXTENSION uint8_t dataBuf[0];
} acldumpChunk;

/* From here on nothing is written to disk: callback(chunk, sizeof(acldumpChunk) + chunk->bufLen). */
ACL_DUMP_API aclError acldumpRegCallback(int32_t (*const callback)(const acldumpChunk *, int32_t), int32_t flag);
ACL_DUMP_API void acldumpUnregCallback(void);

/* ---- Places */

typedef enum acldumpType {
    AIC_ERR_BRIEF_DUMP = 1,
    AIC_ERR_NORM_DUMP = 2,
    AIC_ERR_DETAIL_DUMP = 3,
    DATA_DUMP = 4,
    OVERFLOW_DUMP = 5
} acldumpType;

/* NULL while that kind of dump is off. The text stays valid until the path changes. */
ACL_FUNC_VISIBILITY const char *acldumpGetPath(acldumpType type);

/* ---- Descriptions of single operators */

#define ACL_OP_DUMP_OP_AICORE_ARGS 0x00000001U

ACL_FUNC_VISIBILITY aclError aclopStartDumpArgs(uint32_t types, const char *path);
ACL_FUNC_VISIBILITY aclError aclopStopDumpArgs(uint32_t types);

/* ---- Tensors of an operator that failed, saved by the program */

#define ACL_DUMP_MAX_SHAPE_NUM 25

typedef enum acldumpTensorType {
    ACL_DUMP_TENSOR_INPUT = 0,
    ACL_DUMP_TENSOR_OUTPUT = 1,
    ACL_DUMP_TENSOR_WORKSPACE = 2
} acldumpTensorType;

typedef enum acldumpTensorAddressType {
    ACL_DUMP_ADDR_PTR = 0,
    ACL_DUMP_ADDR_PTR_PTR = 1,
    ACL_DUMP_ADDR_RAW = 2 /* tensorAddr is where the data is: the only kind accepted */
} acldumpTensorAddressType;

typedef enum acldumpTensorPlacement {
    ACL_DUMP_PLACEMENT_DEVICE = 0, /* the only placement accepted */
    ACL_DUMP_PLACEMENT_HOST = 1,
    ACL_DUMP_PLACEMENT_END = 2
} acldumpTensorPlacement;

typedef struct acldumpTensorInfo {
    acldumpTensorType type;
    size_t tensorSize; /* bytes */
    int32_t format;    /* an aclFormat */
    int32_t dataType;  /* an aclDataType */
    int64_t *tensorAddr;
    acldumpTensorAddressType addrType;
    acldumpTensorPlacement placement;
    uint32_t argsOffset;
    uint32_t shapeNum; /* how many of shape count */
    uint32_t originShapeNum;
    uint64_t shape[ACL_DUMP_MAX_SHAPE_NUM];
    uint64_t originShape[ACL_DUMP_MAX_SHAPE_NUM];
} acldumpTensorInfo;

ACL_DUMP_WEAK ACL_FUNC_VISIBILITY aclError acldumpSaveExceptionInfo(const char *file_name, const char *user_tag,
                                                                    const acldumpTensorInfo *tensors,
                                                                    size_t n_tensors);
ACL_DUMP_WEAK ACL_FUNC_VISIBILITY aclError acldumpGetExceptionInfoPath(char *path, size_t size);

#ifdef __cplusplus
}
#endif

#endif
