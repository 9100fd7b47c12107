#ifndef OPSCOPE_ACLNN_CDIST_H
#define OPSCOPE_ACLNN_CDIST_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the distances, in the norm p, of the rows of x1 and x2 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCdistGetWorkspaceSize(const aclTensor *x1, const aclTensor *x2,
        float p, int64_t compute_mode, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnCdist(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
