#ifndef OPSCOPE_ACLNN_VAR_H
#define OPSCOPE_ACLNN_VAR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the variance over dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnVarGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, bool unbiased, bool keepdim, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnVar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the variance over dim, divided by n - correction */
ACL_FUNC_VISIBILITY aclnnStatus aclnnVarCorrectionGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnVarCorrection(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
