#ifndef OPSCOPE_ACLNN_UPSAMPLE_LINEAR_1D_H
#define OPSCOPE_ACLNN_UPSAMPLE_LINEAR_1D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with outputSize entries on its last axis, between their two neighbours */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleLinear1dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, bool alignCorners, double scale, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleLinear1d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
