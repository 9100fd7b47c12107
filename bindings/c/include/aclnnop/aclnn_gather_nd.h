#ifndef OPSCOPE_ACLNN_GATHER_ND_H
#define OPSCOPE_ACLNN_GATHER_ND_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the parts of self at the places whose coordinates are the last axis of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGatherNdGetWorkspaceSize(const aclTensor *self,
        const aclTensor *indices, bool negativeIndexSupport, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGatherNd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
