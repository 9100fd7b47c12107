#ifndef OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_V3_H
#define OPSCOPE_ACLNN_INCRE_FLASH_ATTENTION_V3_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnIncreFlashAttentionV2; pseShift is added to the scaled products, and with blocktable key and value lie in blocks */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttentionV3GetWorkspaceSize(const aclTensor *query,
        const aclTensorList *key, const aclTensorList *value, const aclTensor *pseShift,
        const aclTensor *attenMask, const aclIntArray *actualSeqLengths,
        const aclTensor *dequantScale1, const aclTensor *quantScale1,
        const aclTensor *dequantScale2, const aclTensor *quantScale2, const aclTensor *quantOffset2,
        const aclTensor *antiquantScale, const aclTensor *antiquantOffset,
        const aclTensor *blocktable, int64_t numHeads, double scaleValue, const char *inputLayout,
        int64_t numKeyValueHeads, int64_t blockSize, int64_t innerPrecise, aclTensor *attentionOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIncreFlashAttentionV3(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
