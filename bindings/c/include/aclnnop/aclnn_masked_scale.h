#ifndef OPSCOPE_ACLNN_MASKED_SCALE_H
#define OPSCOPE_ACLNN_MASKED_SCALE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self * mask * scale */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaskedScaleGetWorkspaceSize(const aclTensor *self,
        const aclTensor *mask, float scale, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaskedScale(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
