#ifndef OPSCOPE_ACLNN_NONZERO_V2_H
#define OPSCOPE_ACLNN_NONZERO_V2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the coordinates of elements other than 0, a column for each */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNonzeroV2GetWorkspaceSize(const aclTensor *self,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNonzeroV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
