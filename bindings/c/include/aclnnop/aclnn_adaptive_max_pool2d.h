#ifndef OPSCOPE_ACLNN_ADAPTIVE_MAX_POOL2D_H
#define OPSCOPE_ACLNN_ADAPTIVE_MAX_POOL2D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the maximum of each of outputSize windows, and its place in the plane */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveMaxPool2dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, aclTensor *outputOut, aclTensor *indicesOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveMaxPool2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
