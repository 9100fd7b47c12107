#ifndef OPSCOPE_ACLNN_HEAVISIDE_H
#define OPSCOPE_ACLNN_HEAVISIDE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0 below 0, 1 above it, values at it */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHeavisideGetWorkspaceSize(const aclTensor *input,
        const aclTensor *values, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHeaviside(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
