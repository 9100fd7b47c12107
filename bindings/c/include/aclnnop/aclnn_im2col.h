#ifndef OPSCOPE_ACLNN_IM2COL_H
#define OPSCOPE_ACLNN_IM2COL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the windows of self as columns, 0 in the padding */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2colGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *kernelSize, const aclIntArray *dilation, const aclIntArray *padding,
        const aclIntArray *stride, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIm2col(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
