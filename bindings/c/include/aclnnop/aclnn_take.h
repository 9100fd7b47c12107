#ifndef OPSCOPE_ACLNN_TAKE_H
#define OPSCOPE_ACLNN_TAKE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the elements of self, counted row by row, at the places of index */
ACL_FUNC_VISIBILITY aclnnStatus aclnnTakeGetWorkspaceSize(const aclTensor *self,
        const aclTensor *index, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnTake(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
