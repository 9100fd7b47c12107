#ifndef OPSCOPE_ACLNN_AVGPOOL2D_H
#define OPSCOPE_ACLNN_AVGPOOL2D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the mean of each window; the padding counts if countIncludePad is true; divisorOverride divides instead of the number unless it is 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *kernelSize, const aclIntArray *strides, const aclIntArray *paddings,
        bool ceilMode, bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAvgPool2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
