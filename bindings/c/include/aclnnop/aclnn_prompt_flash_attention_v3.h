#ifndef OPSCOPE_ACLNN_PROMPT_FLASH_ATTENTION_V3_H
#define OPSCOPE_ACLNN_PROMPT_FLASH_ATTENTION_V3_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnPromptFlashAttentionV2; pseShift is added to the scaled products */
ACL_FUNC_VISIBILITY aclnnStatus aclnnPromptFlashAttentionV3GetWorkspaceSize(const aclTensor *query,
        const aclTensor *key, const aclTensor *value, const aclTensor *pseShift,
        const aclTensor *attenMask, const aclIntArray *actualSeqLengths,
        const aclIntArray *actualSeqLengthsKv, const aclTensor *deqScale1,
        const aclTensor *quantScale1, const aclTensor *deqScale2, const aclTensor *quantScale2,
        const aclTensor *quantOffset2, int64_t numHeads, double scaleValue, int64_t preTokens,
        int64_t nextTokens, const char *inputLayout, int64_t numKeyValueHeads, int64_t sparseMode,
        int64_t innerPrecise, aclTensor *attentionOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnPromptFlashAttentionV3(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
