#ifndef OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL3D_H
#define OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL3D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the mean of each of outputSize windows */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool3dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool3d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
