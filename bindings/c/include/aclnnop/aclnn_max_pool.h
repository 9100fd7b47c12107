#ifndef OPSCOPE_ACLNN_MAX_POOL_H
#define OPSCOPE_ACLNN_MAX_POOL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the maximum of each window; without strides 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPoolGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *kernelShape, const aclIntArray *strides, int64_t autoPad,
        const aclIntArray *pads, const aclIntArray *dilations, int64_t ceilMode, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPool(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
