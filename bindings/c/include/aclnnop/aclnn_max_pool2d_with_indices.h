#ifndef OPSCOPE_ACLNN_MAX_POOL2D_WITH_INDICES_H
#define OPSCOPE_ACLNN_MAX_POOL2D_WITH_INDICES_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the maximum of each window, and its place in the plane; without stride the extents of the kernel */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPool2dWithIndicesGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
        const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPool2dWithIndices(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
