#ifndef OPSCOPE_ACLNN_UPSAMPLE_NEAREST_EXACT1D_H
#define OPSCOPE_ACLNN_UPSAMPLE_NEAREST_EXACT1D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with outputSize entries on its last axis, each the one below its middle */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleNearestExact1dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, double scales, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleNearestExact1d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
