#ifndef OPSCOPE_ACLNN_IS_POS_INF_H
#define OPSCOPE_ACLNN_IS_POS_INF_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* whether self is positive infinity */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsPosInfGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsPosInf(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
