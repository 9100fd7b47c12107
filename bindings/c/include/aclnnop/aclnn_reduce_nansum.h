#ifndef OPSCOPE_ACLNN_REDUCE_NANSUM_H
#define OPSCOPE_ACLNN_REDUCE_NANSUM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the sum over dim of what is not NaN */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReduceNansumGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, bool keepDim, aclDataType dtype, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnReduceNansum(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
