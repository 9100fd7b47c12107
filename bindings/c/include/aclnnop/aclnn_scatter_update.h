#ifndef OPSCOPE_ACLNN_SCATTER_UPDATE_H
#define OPSCOPE_ACLNN_SCATTER_UPDATE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* data with batch i of updates from place indices[i] of axis on */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterUpdateGetWorkspaceSize(aclTensor *data,
        const aclTensor *indices, const aclTensor *updates, int64_t axis, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterUpdate(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
