#ifndef OPSCOPE_ACLNN_PROMPT_FLASH_ATTENTION_H
#define OPSCOPE_ACLNN_PROMPT_FLASH_ATTENTION_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(scaleValue * query @ key^T) @ value, without what attenMask masks; pseShift has no effect */
ACL_FUNC_VISIBILITY aclnnStatus aclnnPromptFlashAttentionGetWorkspaceSize(const aclTensor *query,
        const aclTensor *key, const aclTensor *value, const aclTensor *pseShift,
        const aclTensor *attenMask, const aclIntArray *actualSeqLengths, int64_t numHeads,
        double scaleValue, int64_t preTokens, int64_t nextTokens, const char *inputLayout,
        int64_t numKeyValueHeads, aclTensor *attentionOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnPromptFlashAttention(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
