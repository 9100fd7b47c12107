#ifndef OPSCOPE_ACLNN_ROTARY_POSITION_EMBEDDING_H
#define OPSCOPE_ACLNN_ROTARY_POSITION_EMBEDDING_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x * cos + x rotated * sin; mode 0 exchanges halves, 1 neighbours, 2 quarters, and 3 halves after the even places were moved in front */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRotaryPositionEmbeddingGetWorkspaceSize(const aclTensor *x,
        const aclTensor *cos, const aclTensor *sin, int64_t mode, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRotaryPositionEmbedding(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
