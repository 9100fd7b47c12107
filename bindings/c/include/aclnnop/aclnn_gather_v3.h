#ifndef OPSCOPE_ACLNN_GATHER_V3_H
#define OPSCOPE_ACLNN_GATHER_V3_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* as aclnnGatherV2, for each batch of the first batchDims axes on its own */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGatherV3GetWorkspaceSize(const aclTensor *self, int64_t dim,
        const aclTensor *index, int64_t batchDims, int64_t mode, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGatherV3(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
