#ifndef OPSCOPE_ACLNN_SCATTER_ND_H
#define OPSCOPE_ACLNN_SCATTER_ND_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* data with updates at the places whose coordinates are the last axis of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterNdGetWorkspaceSize(const aclTensor *data,
        const aclTensor *indices, const aclTensor *updates, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterNd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
