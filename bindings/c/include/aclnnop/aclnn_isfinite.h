#ifndef OPSCOPE_ACLNN_ISFINITE_H
#define OPSCOPE_ACLNN_ISFINITE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* whether self is neither infinite nor NaN */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsFiniteGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIsFinite(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
